// apply: what is written, what is left alone, what is refused, and that nothing half-written ever stands there.
#include <QDir>
#include <QtTest>

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

SynthModel withTensorsOf(SynthModel model, const std::string &file)
{
    const auto checkpoint = orThrow(openCheckpoint(file));
    for (const StoredTensor &tensor : checkpoint->info().tensors)
        model.tensors[tensor.name] = orThrow(checkpoint->readMatrix(tensor));
    return model;
}

double logitChange(const SynthModel &model, const std::string &before, const std::string &after)
{
    const SynthTokens tokens = synthTokens(model, 64, 7);
    const MatrixD a = referenceForward(withTensorsOf(model, before), tokens.ids, tokens.lengths).logits;
    const MatrixD b = referenceForward(withTensorsOf(model, after), tokens.ids, tokens.lengths).logits;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference += (a.values()[i] - b.values()[i]) * (a.values()[i] - b.values()[i]);
        norm += a.values()[i] * a.values()[i];
    }
    return std::sqrt(difference / norm);
}

/// Everything in the folder but the inputs of the road.
QStringList leftovers(const PlanRoad &road)
{
    QStringList names = QDir(QString::fromStdString(road.file(""))).entryList(QDir::Files | QDir::Hidden | QDir::Dirs | QDir::NoDotAndDotDot);
    names.removeAll("d.h5");
    names.removeAll("m.safetensors");
    names.removeIf([](const QString &name) { return name.startsWith("p."); });
    return names;
}

} // namespace

class TestApply : public QObject {
    Q_OBJECT
private slots:
    void theFunctionStaysInDouble_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("method");
        for (const char *family : {"llama", "gemma", "opt", "phi3", "gpt2", "bert"})
            QTest::newRow(family) << QString(family) << QString("smoothquant");
        QTest::newRow("shift on a LayerNorm") << QString("opt") << QString("os_plus");
    }
    void theFunctionStaysInDouble()
    {
        QFETCH(QString, family);
        QFETCH(QString, method);
        const PlanRoad road(family.toStdString());
        PlanOptions options = PlanRoad::options(method.toStdString());
        options.pins.clear();
        const Plan plan = road.plan(options);
        const ApplyResult result = orThrow(road.apply(plan, road.checkpoint(), road.out(), StoreAs::F64));
        QVERIFY(result.tensorsRewritten > 0);
        const double change = logitChange(road.model(), road.checkpoint(), road.out());
        QVERIFY2(change <= 1e-11, qPrintable(QString::number(change)));
    }

    void groupedValueRowsAreDividedByTheFactorTheyShare()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out(), StoreAs::F64));
        const auto found = std::find_if(plan.assignments.begin(), plan.assignments.end(), [](const Assignment &a) { return a.edge.value == "layers.1.attn_out"; });
        QVERIFY(found != plan.assignments.end());
        const auto &s = std::get<ScaleOp>(found->rewrite->input.operators.at(0).value).divisor;
        const auto in = std::find_if(plan.assignments.begin(), plan.assignments.end(), [](const Assignment &a) { return a.edge.value == "layers.1.attn_in"; });
        const auto &columns = std::get<ScaleOp>(in->rewrite->input.operators.at(0).value).divisor;
        const TensorTable before = readCheckpoint(road.checkpoint()), after = readCheckpoint(road.out());
        const auto &v = before.at("model.layers.1.self_attn.v_proj.weight").second, &w = after.at("model.layers.1.self_attn.v_proj.weight").second;
        // 6 query heads on 2 key-value heads of 16: channel k reads row (k / 16 / 3) * 16 + k % 16.
        for (std::size_t k : {0u, 17u, 40u, 48u, 95u}) {
            const std::size_t row = k / 16 / 3 * 16 + k % 16;
            for (std::size_t c = 0; c < 96; ++c)
                QVERIFY(std::abs(w[row * 96 + c] - v[row * 96 + c] * columns[c] / s[k]) <= 1e-15 * std::abs(w[row * 96 + c]));
        }
    }

    void whatThePlanDoesNotNameIsByteIdentical()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        const ApplyResult result = orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const auto in = orThrow(openCheckpoint(road.checkpoint())), out = orThrow(openCheckpoint(road.out()));
        QCOMPARE(out->info().tensors.size(), in->info().tensors.size());
        std::int64_t same = 0;
        for (const StoredTensor &tensor : in->info().tensors) {
            const StoredTensor *other = out->info().find(tensor.name);
            QVERIFY(other && other->type == tensor.type && other->shape == tensor.shape);
            same += orThrow(in->readRaw(tensor)) == orThrow(out->readRaw(*other)) ? 1 : 0;
        }
        QCOMPARE(same, result.tensorsCopied);
        QCOMPARE(out->info().metadata.at("planish.basis_in"), plan.basisIn);
        QCOMPARE(out->info().metadata.at("planish.basis_out"), result.basisOut);
        QCOMPARE(out->info().metadata.at("format"), std::string("pt"));
        QCOMPARE(nlohmann::json::parse(readText(road.out() + ".planish.json"))["basis_out"].get<std::string>(), result.basisOut);
    }

    void aSecondTimeIsRefusedByTheMetadata()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const auto again = road.apply(plan, road.out(), road.file("u.safetensors"));
        QVERIFY(!again);
        QCOMPARE(again.error().rule, std::string("basis_already_applied"));
        QVERIFY(!std::filesystem::exists(road.file("u.safetensors")));
    }

    void aSecondTimeWithoutMetadataIsRefusedByTheReceipt()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        writeCheckpoint(road.file("stripped.safetensors"), readCheckpoint(road.out()), StoredType::F16);
        const auto again = road.apply(plan, road.file("stripped.safetensors"), road.file("u.safetensors"));
        QVERIFY(!again);
        QCOMPARE(again.error().rule, std::string("basis_already_applied"));
    }

    void anotherBasisIsRefused()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        TensorTable tensors = readCheckpoint(road.checkpoint());
        tensors.at("model.layers.0.mlp.up_proj.weight").second[7] += 1.0;
        writeCheckpoint(road.file("other.safetensors"), tensors, StoredType::F16);
        const auto result = road.apply(plan, road.file("other.safetensors"), road.out());
        QVERIFY(!result);
        QCOMPARE(result.error().rule, std::string("basis_mismatch"));
    }

    void anotherModelNamesItsFirstMissingTensor()
    {
        const PlanRoad road, other("opt");
        const auto result = road.apply(road.plan(), other.checkpoint(), road.out());
        QVERIFY(!result);
        QCOMPARE(result.error().rule, std::string("basis_mismatch"));
        QVERIFY2(result.error().what.find("layers.0.") != std::string::npos, result.error().what.c_str());
        QVERIFY(leftovers(road).isEmpty());
    }

    void aFoldedValueBeyondItsTypeIsRefused()
    {
        const PlanRoad road;
        Plan plan = road.plan();
        Rewrite rewrite = *plan.assignments[0].rewrite;
        std::get<ScaleOp>(rewrite.input.operators[0].value).divisor[3] = 1e-9;
        plan.assignments[0].rewrite = std::make_shared<const Rewrite>(rewrite);
        const auto result = road.apply(plan, road.checkpoint(), road.out());
        QVERIFY(!result);
        QCOMPARE(result.error().rule, std::string("overflow"));
        QVERIFY(leftovers(road).isEmpty());
    }

    void aStopLeavesNothing()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        std::stop_source source;
        const ProgressSink stopAtThird = [&](const ProgressReport &report) {
            if (report.done >= 3)
                source.request_stop();
        };
        const auto result = applyPlan(road.planFile(), plan, road.checkpoint(), road.out(), StoreAs::Stored, families(), source.get_token(), stopAtThird);
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::Cancelled);
        QVERIFY2(leftovers(road).isEmpty(), qPrintable(leftovers(road).join(' ')));
    }

    void whileItIsWrittenTheFileHasAnotherName()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        bool seen = false;
        const ProgressSink look = [&](const ProgressReport &) { seen = seen || std::filesystem::exists(road.out()); };
        orThrow(applyPlan(road.planFile(), plan, road.checkpoint(), road.out(), StoreAs::Stored, families(), {}, look));
        QVERIFY(!seen);
        QVERIFY(std::filesystem::exists(road.out()));
    }

    void theInputIsNeverTheOutput()
    {
        const PlanRoad road;
        const std::string before = readText(road.checkpoint());
        QVERIFY(!road.apply(road.plan(), road.checkpoint(), road.checkpoint()));
        QVERIFY(readText(road.checkpoint()) == before);
    }

    void aShardedFolderKeepsItsShards()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        std::filesystem::create_directory(road.file("in"));
        TensorTable first, second;
        nlohmann::json index;
        for (const auto &[name, tensor] : readCheckpoint(road.checkpoint())) {
            const bool one = name.find("layers.0") != std::string::npos;
            (one ? first : second)[name] = tensor;
            index["weight_map"][name] = one ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
        }
        writeCheckpoint(road.file("in/model-00001-of-00002.safetensors"), first, StoredType::F16);
        writeCheckpoint(road.file("in/model-00002-of-00002.safetensors"), second, StoredType::F16);
        writeText(road.file("in/model.safetensors.index.json"), index.dump());
        writeText(road.file("in/tokenizer.json"), "{\"a\": 1}");
        const ApplyResult folder = orThrow(road.apply(plan, road.file("in"), road.file("out")));
        const ApplyResult single = orThrow(road.apply(plan, road.checkpoint(), road.out()));
        QCOMPARE(folder.basisIn, single.basisIn);
        QCOMPARE(folder.basisOut, single.basisOut);
        QCOMPARE(readText(road.file("out/tokenizer.json")), std::string("{\"a\": 1}"));
        QCOMPARE(orThrow(openCheckpoint(road.file("out/model-00001-of-00002.safetensors")))->info().tensors.size(), first.size());
        QCOMPARE(readCheckpoint(road.file("out")).size(), first.size() + second.size());
        QVERIFY(!road.apply(plan, road.file("in"), road.file("out")));
    }
};

QTEST_GUILESS_MAIN(TestApply)
#include "tst_apply.moc"
