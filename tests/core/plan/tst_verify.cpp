// verify: an honest apply passes, and every kind of dishonest one is found and named. Sealed rows are counted each time.
#include <QtTest>

#include <nlohmann/json.hpp>

#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

/// OUT with one tensor changed.
std::string changed(const PlanRoad &road, const std::string &name, const std::function<void(std::vector<double> &)> &change, StoredType type)
{
    TensorTable tensors = readCheckpoint(road.out());
    change(tensors.at(name).second);
    const std::string file = road.file("changed.safetensors");
    writeCheckpoint(file, tensors, type);
    return file;
}

VerifyEdge edgeOf(const VerifyResult &result, const std::string &id)
{
    return *std::find_if(result.edges.begin(), result.edges.end(), [&](const VerifyEdge &edge) { return edge.edge.value == id; });
}

} // namespace

class TestVerify : public QObject {
    Q_OBJECT
private slots:
    void anHonestApplyPasses_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("type");
        for (const char *family : {"llama", "gemma", "opt", "phi3", "gpt2", "bert"})
            QTest::newRow(family) << QString(family) << static_cast<int>(StoredType::F16);
        QTest::newRow("llama bf16") << QString("llama") << static_cast<int>(StoredType::Bf16);
        QTest::newRow("llama f32") << QString("llama") << static_cast<int>(StoredType::F32);
    }
    void anHonestApplyPasses()
    {
        QFETCH(QString, family);
        QFETCH(int, type);
        const PlanRoad road(family.toStdString(), static_cast<StoredType>(type));
        PlanOptions options = PlanRoad::options("smoothquant", {"alpha=0.5"});
        options.pins.clear();
        const Plan plan = road.plan(options);
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const VerifyResult result = orThrow(road.verify(plan, road.out()));
        for (const VerifyEdge &edge : result.edges)
            QVERIFY2(edge.passed, (edge.edge.value + ": " + edge.reason).c_str());
        QVERIFY(result.passed);
        QCOMPARE(result.opened, 1);
        QVERIFY(result.rows.sealed > 0);
        for (const VerifyEdge &edge : result.edges) {
            QVERIFY(edge.sealed && edge.identitySealed);
            QVERIFY(edge.storedRelativeFrobenius <= edge.threshold);
        }
    }

    void aGainWrongByOnePercentIsNamed()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const std::string file = changed(road, "model.layers.1.input_layernorm.weight", [](std::vector<double> &gain) { gain[5] *= 1.01; }, StoredType::F16);
        const VerifyResult result = orThrow(road.verify(plan, file));
        QVERIFY(!result.passed);
        const VerifyEdge edge = edgeOf(result, "layers.1.attn_in");
        QVERIFY(!edge.passed);
        QVERIFY2(edge.reason.find("layers.1.input_layernorm: channel 5 deviates") == 0, edge.reason.c_str());
        QVERIFY(edgeOf(result, "layers.0.attn_in").passed);
    }

    void aProducerRowLeftBehindIsNamed()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const std::string file = changed(road, "model.layers.0.mlp.up_proj.weight", [](std::vector<double> &w) {
            for (std::size_t c = 0; c < 96; ++c)
                w[11 * 96 + c] *= 1.5;
        }, StoredType::F16);
        const VerifyResult result = orThrow(road.verify(plan, file));
        const VerifyEdge edge = edgeOf(result, "layers.0.mlp_down");
        QVERIFY(!edge.passed);
        QVERIFY2(edge.reason.find("layers.0.up_proj: row 11 deviates") == 0, edge.reason.c_str());
    }

    void aWrongConsumerIsFoundOnRows()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const std::string file = changed(road, "model.layers.0.self_attn.o_proj.weight", [](std::vector<double> &w) {
            for (double &value : w)
                value *= 1.01;
        }, StoredType::F16);
        const VerifyEdge edge = edgeOf(orThrow(road.verify(plan, file)), "layers.0.attn_out");
        QVERIFY(!edge.passed);
        QVERIFY2(edge.reason.find("layers.0.o_proj deviates") != std::string::npos, edge.reason.c_str());
    }

    void aTensorOutsideThePlanMustNotChange()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const std::string file = changed(road, "model.embed_tokens.weight", [](std::vector<double> &w) { w[0] += 0.5; }, StoredType::F16);
        const VerifyResult result = orThrow(road.verify(plan, file));
        QVERIFY(!result.passed);
        QCOMPARE(result.changedTensors, std::vector<std::string>{"model.embed_tokens.weight"});
    }

    void theUntransformedFileFailsAndStillCounts()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const VerifyResult first = orThrow(road.verify(plan, road.checkpoint()));
        QVERIFY(!first.passed);
        QCOMPARE(first.opened, 1);
        QVERIFY(first.edges.front().reason.find("layers.0.") == 0);
        const VerifyResult second = orThrow(road.verify(plan, road.out()));
        QVERIFY(second.passed);
        QCOMPARE(second.opened, 2);
        const auto log = nlohmann::json::parse(readText(road.file("p.verify.json")));
        QCOMPARE(log["runs"].size(), std::size_t(2));
        QCOMPARE(log["runs"][0]["passed"].get<bool>(), false);
        QVERIFY(!log["runs"][0]["failed_edges"].empty());
    }

    void anotherDumpOpensNoSealedRows()
    {
        const PlanRoad road, other;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const SynthTokens tokens = synthTokens(road.model(), 64, 99);
        orThrow(writeForwardDump(road.file("e.h5"), road.model(), tokens, referenceForward(road.model(), tokens.ids, tokens.lengths)));
        const auto result = orThrow(verifyPlan(road.planFile(), plan, road.file("e.h5"), road.checkpoint(), road.out(), families(), PlanRoad::backend(), {}, {}));
        QVERIFY(result.passed);
        QCOMPARE(result.opened, 0);
        QCOMPARE(result.rows.score.value_or(0), std::int64_t(64));
    }

    void anOriginalOfAnotherBasisIsRefused()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const auto result = verifyPlan(road.planFile(), plan, road.dump(), road.out(), road.out(), families(), PlanRoad::backend(), {}, {});
        QVERIFY(!result);
        QCOMPARE(result.error().rule, std::string("basis_mismatch"));
    }
};

QTEST_GUILESS_MAIN(TestVerify)
#include "tst_verify.moc"
