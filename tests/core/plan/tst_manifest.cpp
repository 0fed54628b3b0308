// A plan written and read back is the same plan: every operator, every slot of a Rewrite, every number to the last bit.
#include <QDir>
#include <QProcess>
#include <QtTest>

#include "core/io/file_key.h"
#include "core/plan/manifest.h"
#include "core/transform/hadamard_orders.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

MatrixD someMatrix(std::size_t rows, std::size_t cols, double seed)
{
    MatrixD matrix(rows, cols);
    for (std::size_t i = 0; i < matrix.size(); ++i)
        matrix.data()[i] = std::sin(seed + 1.7 * static_cast<double>(i)) / 3.0;
    return matrix;
}

MatrixD rotation(double angle)
{
    MatrixD matrix(2, 2);
    matrix(0, 0) = matrix(1, 1) = std::cos(angle);
    matrix(0, 1) = std::sin(angle);
    matrix(1, 0) = -std::sin(angle);
    return matrix;
}

MatrixD transposed(const MatrixD &in)
{
    MatrixD out(in.cols(), in.rows());
    for (std::size_t r = 0; r < in.rows(); ++r)
        for (std::size_t c = 0; c < in.cols(); ++c)
            out(c, r) = in(r, c);
    return out;
}

/// 24 channels through every kind of operator.
std::vector<Operator> everyOperator()
{
    std::vector<double> scale(24);
    std::vector<std::int64_t> perm(24);
    for (std::size_t k = 0; k < 24; ++k) {
        scale[k] = 0.1 + 1.0 / (3.0 + static_cast<double>(k));
        perm[k] = static_cast<std::int64_t>((5 * k) % 24);
    }
    Operator hadamard = *hadamardFor(24);
    std::get<HadamardOp>(hadamard.value).signs.assign(24, 1);
    std::get<HadamardOp>(hadamard.value).signs[3] = -1;
    Operator inverse = *blockHadamardFor(24, 8);
    std::get<HadamardOp>(inverse.value).inverse = true;
    BlockDenseOp blocks;
    blocks.block = 2;
    blocks.blocks = {rotation(0.3), MatrixD(2, 2)};
    blocks.blocks[1](0, 0) = 2.0;
    blocks.blocks[1](0, 1) = 0.5;
    blocks.blocks[1](1, 1) = 4.0;
    blocks.inverses = {transposed(rotation(0.3)), MatrixD(2, 2)};
    blocks.inverses[1](0, 0) = 0.5;
    blocks.inverses[1](0, 1) = -0.0625;
    blocks.inverses[1](1, 1) = 0.25;
    blocks.assignment = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0};
    KroneckerOp kronecker{std::make_shared<const Operator>(Operator{DenseOp{rotation(0.7), transposed(rotation(0.7)), true}}),
                          std::make_shared<const Operator>(Operator{IdentityOp{12}})};
    return {{ScaleOp{scale}}, {PermuteOp{perm}}, hadamard, inverse, {blocks}, {kronecker}, {IdentityOp{24}}};
}

Rewrite everySlot()
{
    Rewrite rewrite;
    rewrite.input.shift.assign(24, 0.0);
    rewrite.input.shift[5] = -1.0 / 3.0;
    rewrite.input.operators = everyOperator();
    rewrite.output = Transform{{}, {{ScaleOp{{2.0, 0.5, 3.0}}}}};
    rewrite.replaced = {std::nullopt, someMatrix(3, 24, 1.0)};
    rewrite.lowRank = LowRank{2, false, Precision::Bf16, {someMatrix(4, 2, 2.0), someMatrix(3, 2, 3.0)}, {someMatrix(2, 24, 4.0), someMatrix(2, 24, 5.0)}};
    rewrite.exceptions = Exceptions{StaticExceptions{{1, 7, 23}}, Precision::Stored, Precision::Quantized, StepIgnores::Elements};
    rewrite.clips = {{Target::Activation, Clip::Kind::Multiplier, {0.9}, {0.8}, 0, false},
                     {Target::Weight, Clip::Kind::AbsoluteBound, {}, {1.5, 2.5, 3.5}, 1, true},
                     {Target::Weight, Clip::Kind::AbsoluteRange, {-1.0, -2.0}, {1.0, 2.0}, 0, false}};
    rewrite.otherReaders = {{"residual", {1.0, 2.0, 3.0}, {0.5}, "layers.0.o_proj"}};
    rewrite.changesFunction = true;
    TrainingRecord training;
    training.optimizer = "cayley";
    training.betas = {0.9, 0.999};
    training.lr = 0.05;
    training.steps = 200;
    training.bestStep = 150;
    training.finalObjective = 1.0 / 7.0;
    training.curve = {3.0, 2.0, 1.0 / 9.0};
    rewrite.training = training;
    rewrite.specs = SpecPair{*parseQuantSpec("int8:token", Role::Activation), *parseQuantSpec("int4:group32:asym", Role::Weight), {}};
    return rewrite;
}

Plan planOf(Rewrite rewrite)
{
    Plan plan;
    plan.toolVersion = "1.10";
    plan.backend = "cpu";
    plan.cpu = "no";
    plan.source.dump = {"d.h5", std::string(64, '1')};
    plan.source.checkpoint = {{"a.safetensors", std::string(64, 'a')}, {"b.safetensors", std::string(64, 'b')}};
    plan.source.family = "llama";
    plan.source.modelInfo.hiddenSize = 24;
    plan.basisIn = "sha256:" + std::string(64, '0');
    plan.calibration.requests = {"0", "2/1"};
    plan.calibration.heldOut = {"1"};
    plan.calibration.sealed = {"3"};
    plan.calibration.rows = 12;
    plan.calibration.phases = {"prefill"};
    plan.calibration.unit = "block";
    plan.calibration.request.calibration = 0.3;
    plan.calibration.request.budget = -1;
    plan.calibration.rowsSha256["sealed"] = std::string(64, '7');
    Assignment a;
    a.edge = {"layers.0.attn_in"};
    a.chain = {{"quarot", {{"gain", std::string("absorb")}, {"signs", std::string("auto")}}, {{"seed", std::int64_t(3)}}},
               {"smoothquant", {{"alpha", 1.0 / 3.0}, {"variant", std::string("paper")}}, {{"alpha", 0.25}, {"identity", true}}}};
    a.candidate.name = "chain: one";
    a.candidate.seed = 18446744073709551615ull;
    a.candidate.act = *parseQuantSpec("int8:token", Role::Activation);
    a.candidate.weight = *parseQuantSpec("int4:group32:asym", Role::Weight);
    a.producerName = "layers.0.input_layernorm";
    a.producerKind = "rmsnorm";
    a.producerOffset = true;
    a.consumers = {"layers.0.q_proj", "layers.0.qkv_proj[8:11]"};
    a.placement.fusedOperators = 2;
    a.placement.shiftFused = true;
    a.placement.fusedInto = {"layers.0.input_layernorm", "layers.0.q_proj", "layers.0.qkv_proj[8:11]"};
    a.functionChange = 1.0 / 3.0;
    a.conditioning.kappa = 0.1 + 0.2;
    a.equivalence = Equivalence{.relativeFrobenius = 5e-324, .maxAbs = 1e300, .rows = 7, .storedDtype = "float16", .storedRelativeFrobenius = 2.0 / 3.0};
    a.alone = OutputBlock{.relativeFrobenius = 1.0 / 7.0, .rows = {0.1, 0.2, 0.3, 0.4}, .perConsumer = {{"layers.0.q_proj", 0.3}}};
    a.joint = OutputBlock{.relativeFrobenius = 1.0 / 9.0};
    a.rewrite = std::make_shared<const Rewrite>(std::move(rewrite));
    a.notes = {"a: note", "no"};
    plan.assignments = {a};
    plan.choices = {{{"layers.0.attn_in"}, "lowest", {{"none", "ok", "", 0.5, 1}, {"x", "refused", "online", {}, -1}}}};
    return plan;
}

Plan throughFiles(const Plan &plan, const QTemporaryDir &folder)
{
    const std::string file = folder.filePath("p.yaml").toStdString();
    orThrow(writePlan(plan, file));
    return orThrow(readPlan(file));
}

} // namespace

class TestManifest : public QObject {
    Q_OBJECT
private slots:
    void everySlotOfARewriteSurvives()
    {
        QTemporaryDir folder;
        const Rewrite before = everySlot();
        const Plan plan = throughFiles(planOf(before), folder);
        const Rewrite &after = *plan.assignments.at(0).rewrite;
        QCOMPARE(after.input.operators.size(), before.input.operators.size());
        for (std::size_t i = 0; i < before.input.operators.size(); ++i)
            QVERIFY2(after.input.operators[i] == before.input.operators[i], nameOf(before.input.operators[i]).c_str());
        QVERIFY(after.input == before.input);
        QVERIFY(after.output == before.output);
        QVERIFY(after.replaced == before.replaced);
        QVERIFY(after.lowRank == before.lowRank);
        QVERIFY(after.exceptions == before.exceptions);
        QVERIFY(after.clips == before.clips);
        QVERIFY(after.otherReaders == before.otherReaders);
        QVERIFY(after.specs == before.specs);
        QCOMPARE(after.changesFunction, before.changesFunction);
        QCOMPARE(after.training->curve, before.training->curve);
        QCOMPARE(after.training->bestStep, before.training->bestStep);
    }

    void dynamicExceptionsSurvive()
    {
        QTemporaryDir folder;
        Rewrite rewrite;
        rewrite.exceptions = Exceptions{DynamicExceptions{6.0, Comparator::Greater, ExceptionUnit::All}, Precision::Fp16, Precision::Stored, StepIgnores::Columns};
        QVERIFY(throughFiles(planOf(rewrite), folder).assignments.at(0).rewrite->exceptions == rewrite.exceptions);
    }

    void thePlanAroundItSurvives()
    {
        QTemporaryDir folder;
        const Plan before = planOf(everySlot()), after = throughFiles(before, folder);
        const Assignment &a = before.assignments[0], &b = after.assignments.at(0);
        QCOMPARE(after.toolVersion, before.toolVersion);
        QCOMPARE(after.cpu, before.cpu);
        QCOMPARE(after.source.checkpoint.size(), std::size_t(2));
        QCOMPARE(after.source.dump.sha256, before.source.dump.sha256);
        QCOMPARE(after.calibration.requests, before.calibration.requests);
        QVERIFY(after.calibration.request == before.calibration.request);
        QCOMPARE(after.calibration.rowsSha256.at("sealed"), before.calibration.rowsSha256.at("sealed"));
        QCOMPARE(b.candidate.name, a.candidate.name);
        QCOMPARE(b.candidate.seed, a.candidate.seed);
        QVERIFY(b.candidate.weight == a.candidate.weight);
        QCOMPARE(b.chain.size(), a.chain.size());
        QVERIFY(b.chain[1].params == a.chain[1].params);
        QVERIFY(b.chain[1].fitted == a.chain[1].fitted);
        QCOMPARE(b.conditioning.kappa, a.conditioning.kappa);
        QCOMPARE(b.equivalence->relativeFrobenius, 5e-324);
        QCOMPARE(b.equivalence->storedRelativeFrobenius, 2.0 / 3.0);
        QCOMPARE(b.alone->relativeFrobenius, 1.0 / 7.0);
        QCOMPARE(b.joint->relativeFrobenius, 1.0 / 9.0);
        QCOMPARE(b.notes, a.notes);
        QCOMPARE(b.placement.fusedOperators, std::size_t(2));
        QCOMPARE(b.placement.online.size(), std::size_t(5));
        QCOMPARE(b.placement.fused.back().rows.begin, std::int64_t(8));
        QCOMPARE(after.choices.at(0).candidates.at(1).reason, std::string("online"));
    }

    void theSideFileCarriesItsHashInItsName()
    {
        QTemporaryDir folder;
        const auto files = orThrow(writePlan(planOf(everySlot()), folder.filePath("p.yaml").toStdString()));
        QCOMPARE(files.size(), std::size_t(2));
        const std::string hash = orThrow(sha256OfFile(files[1])).substr(0, 8);
        QVERIFY(files[1].ends_with("p." + hash + ".safetensors"));
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 2);
    }

    void aManifestThatCannotBeWrittenLeavesNothing()
    {
        QTemporaryDir folder;
        QDir(folder.path()).mkdir("p.yaml");
        QVERIFY(!writePlan(planOf(everySlot()), folder.filePath("p.yaml").toStdString()));
        QVERIFY(QDir(folder.path()).entryList(QDir::Files | QDir::Hidden).isEmpty());
    }

    void aPlanWithoutArraysNeedsNoSideFile()
    {
        QTemporaryDir folder;
        const auto files = orThrow(writePlan(planOf(Rewrite()), folder.filePath("p.yaml").toStdString()));
        QCOMPARE(files.size(), std::size_t(1));
    }

    void everyManifestFitsTheSchema()
    {
        QTemporaryDir folder;
        orThrow(writePlan(planOf(everySlot()), folder.filePath("a.yaml").toStdString()));
        orThrow(writePlan(planOf(Rewrite()), folder.filePath("b.yaml").toStdString()));
        QProcess python;
        python.start("/usr/bin/python3",
                     {"-c",
                      "import sys\n"
                      "try:\n import json, yaml, jsonschema\n"
                      "except ImportError: sys.exit(77)\n"
                      "schema = json.load(open(sys.argv[1]))\n"
                      "for f in sys.argv[2:]: jsonschema.validate(yaml.safe_load(open(f)), schema)\n",
                      QString(PLANISH_SOURCE_DIR) + "/resources/schemas/plan.json", folder.filePath("a.yaml"), folder.filePath("b.yaml")});
        if (!python.waitForFinished(60000) || python.exitCode() == 77)
            QSKIP("python3-yaml and python3-jsonschema are not here");
        QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
    }
};

QTEST_GUILESS_MAIN(TestManifest)
#include "tst_manifest.moc"
