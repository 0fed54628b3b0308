// Manifests that lie, attack or are misspelt: each is refused in one sentence that names file, place and what was expected.
#include <QDir>
#include <QtTest>

#include <cmath>
#include <filesystem>

#include "core/plan/hashes.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

/// Four channels, one scale; as small as a manifest gets.
constexpr const char *kPlan = R"(schema: planish-plan/1
tool: {name: planish, version: 0.1.0, backend: cpu, cpu: x86-64}
source:
  checkpoint: {file: m.safetensors, sha256: 477f6b69e39582bee1e3f68970c8a0cd5ff1ccb1ef43f3e43c888baf6e5feff6}
  dump: {file: d.h5, sha256: a7504a52fb4826da1d039d8ca1688a69a5b918592ad84426d2a826bb6c6b17bc, model: tiny, model_revision: r1, observer: absmax}
basis: {in: "sha256:00", out: null}
calibration: {requests: [0], rows: 128, held_out_rows: 128, sealed_rows: 128, split_seed: 0, masked: false, bos_excluded: false, phases: [prefill]}
edges:
- edge: layers.2.attn_in
  method: smoothquant
  variant: paper
  params:
    alpha: 0.5
  seed: 0
  axis: channel
  producer: {name: layers.2.input_layernorm, kind: rmsnorm, offset: false}
  consumers: [layers.2.q_proj, layers.2.k_proj, layers.2.v_proj]
  operators:
  - kind: scale
    applied_as: divide
    tensor: {file: side.safetensors, key: layers.2.attn_in.s, dtype: F32, shape: [4], sha256: HASH}
  exceptions: []
  fused_into: {producer: layers.2.input_layernorm.weight, consumers: [q_proj, k_proj, v_proj]}
  online: []
  quantizer: {activation: "int8:token", weight: "int8:row", dialect: narrow, packed_layout: none}
  equivalence: {dtype: float64, relative_frobenius: 1.0e-15, max_abs: 1.0e-13, max_rel: 1.0e-12, rows: 128, stored_dtype_relative_frobenius: 0.0004}
  conditioning: {kappa: 2.8, sigma_min: 0.45, sigma_max: 1.28, inverse_residual: 1.0e-16}
  output:
    held_out: {relative_frobenius: 0.02, sqnr_db: 34.0}
    identity_held_out: {relative_frobenius: 0.05, sqnr_db: 26.0}
  dead_channels: {rule: s = 1, count: 0}
  findings: []
ledger: {prefill: {}, decode: {}, weight_bytes: 0, online_flops_per_token: 0, online_bytes_per_token: 0}
runtime: {required_kernels: [], fallback_forbidden: true, tensor_parallel: 1, targets: {vllm: recomputed}}
)";

struct Files {
    QTemporaryDir folder;
    std::string plan() const { return folder.filePath("p.yaml").toStdString(); }

    /// Writes side file and manifest; the hash is that of the values.
    void write(const std::vector<double> &values, const std::string &from = {}, const std::string &to = {}) const
    {
        writeCheckpoint(folder.filePath("side.safetensors").toStdString(), {{"layers.2.attn_in.s", {{values.size()}, values}}}, StoredType::F32);
        std::string text = replaced(kPlan, "HASH", sha256Hex(std::span<const std::byte>(encodeStored(values, StoredType::F32))));
        writeText(plan(), from.empty() ? text : replaced(text, from, to));
    }
    std::string error() const
    {
        const auto read = readPlan(plan());
        return read ? std::string() : toText(read.error());
    }
};

const std::vector<double> kGood = {1.0, 2.0, 0.5, 0.25};

} // namespace

class TestHostilePlans : public QObject {
    Q_OBJECT
private slots:
    void theGoodPlanReads()
    {
        const Files files;
        files.write(kGood);
        const Plan plan = orThrow(readPlan(files.plan()));
        QVERIFY(plan.assignments.at(0).rewrite->input.operators.at(0) == Operator{ScaleOp{kGood}});
        QCOMPARE(plan.assignments[0].placement.fused.size(), std::size_t(4));
    }

    void keysForOthersAreIgnored()
    {
        const Files files;
        files.write(kGood, "  seed: 0", "  seed: 0\n  x-mine: {anything: [1, no]}");
        QCOMPARE(files.error(), std::string());
    }

    void aWrongTextIsRefusedByPlace_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QStringList>("words");
        const auto row = [](const char *name, const char *from, const char *to, QStringList words) {
            QTest::newRow(name) << QString(from) << QString(to) << words;
        };
        row("other schema", "planish-plan/1", "planish-plan/2", {"schema", "planish-plan/1"});
        row("unknown parameter", "alpha: 0.5", "alpha: 0.5\n    smoothing_strenght: 0.5", {"edges[0].params.smoothing_strenght", "layers.2.attn_in"});
        row("unknown key", "axis: channel", "axes: channel", {"edges[0].axes", "unknown key"});
        row("unknown root key", "ledger:", "legder:", {"legder"});
        row("unknown method", "method: smoothquant", "method: smothquant", {"edges[0].method"});
        row("duplicate key", "\n  seed: 0", "\n  seed: 0\n  seed: 1", {"duplicate key seed"});
        row("anchor", "params:", "params: &p", {"anchor"});
        row("edge is a boolean", "edge: layers.2.attn_in", "edge: no", {"edges[0].edge", "not a text"});
        row("seed is a float", "\n  seed: 0", "\n  seed: 1e3", {"edges[0].seed"});
        row("offset is a word", "offset: false", "offset: off", {"edges[0].producer.offset"});
        row("rows are octal", "rows: 128, held", "rows: 0o200, held", {"calibration.rows"});
        row("version is a float", "version: 0.1.0", "version: 1.10", {"tool.version"});
        row("kappa is infinite", "kappa: 2.8", "kappa: .inf", {"edges[0].conditioning.kappa", "finite"});
        row("kappa is nan", "kappa: 2.8", "kappa: .nan", {"kappa"});
        row("another folder", "file: side.safetensors", "file: ../side.safetensors", {"edges[0].operators[0].tensor.file", "outside"});
        row("absolute name", "file: side.safetensors", "file: /etc/passwd", {"edges[0].operators[0].tensor.file", "absolute"});
        row("subfolder", "file: side.safetensors", "file: sub/side.safetensors", {"tensor.file", "folder"});
        row("missing side file", "file: side.safetensors", "file: other.safetensors", {"tensor.file", "other.safetensors"});
        row("missing tensor", "key: layers.2.attn_in.s", "key: layers.2.attn_in.t", {"tensor.key"});
        row("wrong shape", "shape: [4]", "shape: [5]", {"tensor.shape"});
        row("wrong dtype", "dtype: F32", "dtype: F64", {"tensor.dtype"});
        row("unknown operator", "kind: scale", "kind: scales", {"edges[0].operators[0].kind"});
        row("multiplied scale", "applied_as: divide", "applied_as: multiply", {"applied_as"});
        row("not a hadamard", "kind: scale\n    applied_as: divide", "kind: hadamard\n    order: 3\n    sylvester: 4\n    block: 16", {"operators[0]"});
        row("bad spec", "\"int8:row\"", "\"int9:row\"", {"quantizer.weight"});
        row("two edges of one name", "ledger:", "- {edge: layers.2.attn_in, method: none, seed: 0, consumers: []}\nledger:", {"duplicate edge"});
        row("more online than there is", "online: []", "online: [{operator: scale}, {operator: scale}]", {"edges[0].online"});
        row("bad fidelity", "vllm: recomputed", "vllm: perfect", {"runtime.targets.vllm"});
        row("no edges", "edges:", "x-edges:", {"edges"});
    }
    void aWrongTextIsRefusedByPlace()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QStringList, words);
        const Files files;
        files.write(kGood, from.toStdString(), to.toStdString());
        const QString error = QString::fromStdString(files.error());
        QVERIFY2(error.startsWith(QString::fromStdString(files.plan()) + ": "), qPrintable(error));
        for (const QString &word : words)
            QVERIFY2(error.contains(word), qPrintable(error));
    }

    void aWrongHashIsRefused()
    {
        const Files files;
        files.write(kGood);
        const std::string hash = sha256Hex(std::span<const std::byte>(encodeStored(kGood, StoredType::F32)));
        std::string other = hash;
        other[0] = other[0] == '0' ? '1' : '0';
        writeText(files.plan(), replaced(readText(files.plan()), hash, other));
        QVERIFY(files.error().find("edges[0].operators[0].tensor.sha256") != std::string::npos);
    }

    void aBadFactorIsNamedByItsChannel_data()
    {
        QTest::addColumn<double>("value");
        QTest::addColumn<QString>("word");
        QTest::newRow("zero") << 0.0 << QString("zero");
        QTest::newRow("negative") << -1.0 << QString("negative");
        QTest::newRow("nan") << std::nan("") << QString("NaN");
        QTest::newRow("infinite") << HUGE_VAL << QString("Inf");
    }
    void aBadFactorIsNamedByItsChannel()
    {
        QFETCH(double, value);
        QFETCH(QString, word);
        const Files files;
        std::vector<double> values = kGood;
        values[2] = value;
        files.write(values);
        const QString error = QString::fromStdString(files.error());
        QVERIFY2(error.contains(word) && error.contains("layers.2.attn_in") && error.contains(" 2 is"), qPrintable(error));
    }

    void aNegativeFactorIsLegalWhereTheMethodMakesIt()
    {
        const Files files;
        files.write({1.0, -2.0, 0.5, 0.25}, "method: smoothquant\n  variant: paper\n  params:\n    alpha: 0.5", "method: gamma_migration\n  params: {}");
        QCOMPARE(files.error(), std::string());
    }

    void aLinkOutOfTheFolderIsNotFollowed()
    {
        const Files files;
        QTemporaryDir elsewhere;
        files.write(kGood);
        const std::filesystem::path side = files.folder.filePath("side.safetensors").toStdString();
        const std::filesystem::path target = elsewhere.filePath("side.safetensors").toStdString();
        std::filesystem::rename(side, target);
        std::filesystem::create_symlink(target, side);
        QVERIFY(files.error().find("outside") != std::string::npos);
    }

    void aLaughIsRefusedAtItsFirstAnchor()
    {
        const Files files;
        files.write(kGood);
        std::string bomb = "a0: &a0 [lol, lol, lol]\n";
        for (int i = 1; i < 30; ++i)
            bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" + std::to_string(i - 1) + "]\n";
        writeText(files.plan(), bomb + readText(files.plan()));
        QVERIFY(files.error().find("anchor") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestHostilePlans)
#include "tst_hostile_plans.moc"
