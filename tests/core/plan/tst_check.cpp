// check: legality from the plan and the family alone, devices, targets, and hashes that pass, fail or are not looked at.
#include <QtTest>

#include <filesystem>

#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

CheckResult check(const PlanRoad &road, const Plan &plan, int devices = 1, const std::string &checkpoint = {}, const std::string &target = {})
{
    return orThrow(checkPlan(road.planFile(), plan, checkpoint, devices, target, families()));
}

std::string firstRule(const CheckResult &result)
{
    for (const CheckFinding &finding : result.findings)
        if (finding.severity == Refusal::Severity::Error)
            return finding.rule;
    return {};
}

} // namespace

class TestCheck : public QObject {
    Q_OBJECT
private slots:
    void ourOwnPlansAreLegal_data()
    {
        QTest::addColumn<QString>("family");
        for (const char *family : {"llama", "qwen3", "gemma", "opt", "phi3", "gpt2", "bert"})
            QTest::newRow(family) << QString(family);
    }
    void ourOwnPlansAreLegal()
    {
        QFETCH(QString, family);
        const PlanRoad road(family.toStdString());
        PlanOptions options = PlanRoad::options("smoothquant");
        options.pins.clear();
        const CheckResult result = check(road, road.plan(options));
        QVERIFY2(result.legal, result.findings.empty() ? "" : result.findings.front().sentence.c_str());
    }

    void aConsumerLeftOutIsFoundWithoutFiles()
    {
        const PlanRoad road;
        Plan plan = road.plan();
        std::erase(plan.assignments.at(0).consumers, "layers.0.v_proj");
        const CheckResult result = check(road, plan);
        QVERIFY(!result.legal);
        QCOMPARE(firstRule(result), std::string("consumers_not_covered"));
        QVERIFY(result.findings.front().sentence.find("layers.0.v_proj") != std::string::npos);
        plan.source.family.clear(); // found through the names alone
        QCOMPARE(firstRule(check(road, plan)), std::string("consumers_not_covered"));
    }

    void otherRowsOfAFusedTensorAreAWrongProducer()
    {
        const PlanRoad road("phi3");
        Plan plan = road.plan();
        const auto edge = std::find_if(plan.assignments.begin(), plan.assignments.end(), [](const Assignment &a) { return a.edge.value == "layers.0.attn_out"; });
        QCOMPARE(edge->producerName, std::string("layers.0.qkv_proj[128:160]"));
        edge->producerName = "layers.0.qkv_proj[96:128]"; // the key rows
        QCOMPARE(firstRule(check(road, plan)), std::string("wrong_producer"));
    }

    void headsMustDivideOverDevices()
    {
        const PlanRoad road; // 6 query and 2 key-value heads
        const Plan plan = road.plan();
        QVERIFY(check(road, plan, 2).legal);
        const CheckResult result = check(road, plan, 4);
        QCOMPARE(firstRule(result), std::string("divisibility"));
        QVERIFY(result.findings.front().sentence.find("heads do not divide") != std::string::npos);
    }

    void aConditionNumberAboveTheLimitIsIllegal()
    {
        const PlanRoad road;
        Plan plan = road.plan();
        plan.assignments.at(0).conditioning.kappaNonDiagonal = 2e4;
        QCOMPARE(firstRule(check(road, plan)), std::string("conditioning"));
    }

    void equivalenceIsHeldToItsThreshold()
    {
        const PlanRoad road;
        Plan plan = road.plan();
        plan.assignments.at(0).equivalence->storedRelativeFrobenius = 2e-3;
        QCOMPARE(firstRule(check(road, plan)), std::string("equivalence_failed"));
        plan.assignments.at(0).equivalence.reset();
        QCOMPARE(firstRule(check(road, plan)), std::string("equivalence_not_measured"));
    }

    void hashesPassFailOrStayUnchecked()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        CheckResult result = check(road, plan);
        QCOMPARE(result.hashes.at("m.safetensors"), std::string("passed"));
        QCOMPARE(result.hashes.at("d.h5"), std::string("passed"));
        QCOMPARE(result.hashes.at("basis"), std::string("passed"));
        TensorTable tensors = readCheckpoint(road.checkpoint());
        tensors.at("model.embed_tokens.weight").second[0] += 1.0;
        writeCheckpoint(road.file("other.safetensors"), tensors, StoredType::F16);
        result = check(road, plan, 1, road.file("other.safetensors"));
        QCOMPARE(result.hashes.at("m.safetensors"), std::string("failed"));
        QCOMPARE(result.hashes.at("basis"), std::string("passed"));
        QVERIFY(!result.legal);
        std::filesystem::remove(road.dump());
        QCOMPARE(check(road, plan).hashes.at("d.h5"), std::string("unchecked"));
    }

    void anUnknownTargetIsAUsageError()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        QVERIFY(check(road, plan, 1, {}, "vllm").legal);
        const auto result = checkPlan(road.planFile(), plan, {}, 1, "nobody", families());
        QCOMPARE(result.error().code, ErrorCode::Usage);
    }
};

QTEST_GUILESS_MAIN(TestCheck)
#include "tst_check.moc"
