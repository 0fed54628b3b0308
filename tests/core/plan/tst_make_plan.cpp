// makePlan: what enters a plan, what stays out and why, joint evaluation, and what the plan remembers of the run.
#include <QtTest>

#include "core/io/file_key.h"
#include "core/plan/joint.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

const ChoiceEntry &entryOf(const Plan &plan, const std::string &edge, const std::string &name)
{
    for (const ChoiceLog &log : plan.choices)
        for (const ChoiceEntry &entry : log.candidates)
            if (log.edge.value == edge && entry.name == name)
                return entry;
    throw std::runtime_error("no entry");
}

const Assignment &edgeOf(const Plan &plan, const std::string &edge)
{
    for (const Assignment &assignment : plan.assignments)
        if (assignment.edge.value == edge)
            return assignment;
    throw std::runtime_error("no edge " + edge);
}

PlanOptions free(const std::string &method, const std::vector<std::string> &sets = {})
{
    PlanOptions options = PlanRoad::options(method, sets);
    options.pins.clear();
    return options;
}

Expected<Plan> make(const PlanRoad &road, const PlanOptions &options)
{
    return makePlan(road.open(), options, PlanRoad::backend(), {}, {});
}

} // namespace

class TestMakePlan : public QObject {
    Q_OBJECT
private slots:
    void thePlanRemembersItsRun()
    {
        const PlanRoad road;
        const Plan plan = orThrow(make(road, free("smoothquant")));
        QCOMPARE(plan.source.dump.sha256, orThrow(sha256OfFile(road.dump())));
        QCOMPARE(plan.source.checkpoint.at(0).sha256, orThrow(sha256OfFile(road.checkpoint())));
        QCOMPARE(plan.source.family, std::string("llama"));
        // 192 tokens in requests of 32: six units, 3 / 2 / 1.
        QCOMPARE(plan.calibration.requests.size(), std::size_t(3));
        QCOMPARE(plan.calibration.heldOut.size(), std::size_t(2));
        QCOMPARE(plan.calibration.sealed.size(), std::size_t(1));
        QVERIFY(plan.basisIn.starts_with("sha256:"));
        QCOMPARE(plan.assignments.size(), plan.choices.size());
        for (const Assignment &assignment : plan.assignments)
            QVERIFY(assignment.alone && assignment.joint && assignment.identity);
    }

    void anOnlineOperatorIsRefusedUnlessAllowed()
    {
        const PlanRoad road;
        PlanOptions options = free("hadamard");
        const Plan refused = orThrow(make(road, options));
        QCOMPARE(entryOf(refused, "layers.0.mlp_down", "candidate").reason, std::string("online"));
        QCOMPARE(edgeOf(refused, "layers.0.mlp_down").candidate.name, std::string("none"));
        QCOMPARE(edgeOf(refused, "layers.0.mlp_down").status, std::string("refused"));
        QVERIFY(!edgeOf(refused, "layers.0.mlp_down").reason.empty());
        options.allowOnline = true;
        QCOMPARE(entryOf(orThrow(make(road, options)), "layers.0.mlp_down", "candidate").status, std::string("ok"));
    }

    void activationsPerChannelAreAnalysisOnly()
    {
        const PlanRoad road;
        PlanOptions options = free("smoothquant");
        options.candidates.push_back(candidateOf("none", "int8:channel", "int8:row"));
        options.candidates.back().name = "channel";
        QCOMPARE(entryOf(orThrow(make(road, options)), "layers.0.attn_in", "channel").reason, std::string("analysis_only"));
    }

    void aMethodThatIsNotBuiltIsListed()
    {
        const PlanRoad road;
        PlanOptions options = free("smoothquant");
        options.candidates.push_back(options.candidates.front());
        options.candidates.back().name = "later";
        options.candidates.back().unavailable = "not_built";
        QCOMPARE(entryOf(orThrow(make(road, options)), "layers.0.attn_in", "later").reason, std::string("not_built"));
    }

    void excludedEdgesStayOut()
    {
        const PlanRoad road;
        PlanOptions options = free("smoothquant");
        options.exclude = {"*.mlp_down"};
        for (const Assignment &assignment : orThrow(make(road, options)).assignments)
            QVERIFY(!assignment.edge.value.ends_with("mlp_down"));
    }

    void aPinThatIsRefusedEndsThePlan()
    {
        const PlanRoad road;
        PlanOptions options = free("hadamard");
        options.pins = {{"layers.0.mlp_down", "candidate"}};
        const auto plan = make(road, options);
        QVERIFY(!plan);
        QCOMPARE(plan.error().subject, std::string("layers.0.mlp_down"));
        options.pins = {{"layers.0.mlp_down", "nobody"}};
        QCOMPARE(make(road, options).error().code, ErrorCode::Usage);
    }

    void aPostNormEdgeNamesTheShortcut()
    {
        const PlanRoad road("bert");
        const Plan plan = orThrow(make(road, free("smoothquant")));
        const Assignment &edge = edgeOf(plan, "layers.1.attn_in");
        QCOMPARE(edge.candidate.name, std::string("none"));
        QVERIFY2(edge.reason.find("residual") != std::string::npos, edge.reason.c_str());
    }

    void streamsAreRefusedInOneSentence()
    {
        const PlanRoad road;
        PlanOptions options = free("smoothquant");
        options.streams = true;
        QCOMPARE(make(road, options).error().subject, std::string("--streams"));
    }

    void explicitRowsNeverEnterAPlan()
    {
        const PlanRoad road;
        PlanOptions options = free("smoothquant");
        options.evaluate.rows.fitRows = {{0, 64}};
        options.evaluate.rows.scoreRows = {{64, 128}};
        QCOMPARE(make(road, options).error().rule, std::string("analysis_only"));
    }

    void withoutWeightsNothingCanBePlanned()
    {
        const PlanRoad road;
        const auto plan = makePlan(road.open(false), free("smoothquant"), PlanRoad::backend(), {}, {});
        QVERIFY(!plan);
        QVERIFY(toText(plan.error()).find("--weights") != std::string::npos);
    }

    void anEdgeOtherFoldsTouchIsMeasuredAgain()
    {
        const PlanRoad road;
        PlanOptions options = PlanRoad::options("smoothquant", {"alpha=0.5"}, "int8:tensor", "int8:tensor");
        const Plan plan = orThrow(make(road, options));
        // Dividing v and up rows changes the per-tensor weight step of attn_in and mlp_in; down and o are touched by nobody.
        QVERIFY(edgeOf(plan, "layers.0.attn_in").joint->relativeFrobenius != edgeOf(plan, "layers.0.attn_in").alone->relativeFrobenius);
        QVERIFY(edgeOf(plan, "layers.0.mlp_in").joint->relativeFrobenius != edgeOf(plan, "layers.0.mlp_in").alone->relativeFrobenius);
        QCOMPARE(edgeOf(plan, "layers.0.mlp_down").joint->relativeFrobenius, edgeOf(plan, "layers.0.mlp_down").alone->relativeFrobenius);
    }

    void tenPercentWorseTogetherIsAnError()
    {
        Assignment a;
        a.edge = {"layers.3.mlp_in"};
        a.alone = OutputBlock{.relativeFrobenius = 0.100};
        a.joint = OutputBlock{.relativeFrobenius = 0.109};
        QVERIFY(checkJoint({a}, "d.h5").has_value());
        a.joint->relativeFrobenius = 0.111;
        const auto error = checkJoint({a}, "d.h5");
        QCOMPARE(error.error().rule, std::string("joint_error"));
        QVERIFY(error.error().what.find("layers.3.mlp_in") != std::string::npos);
    }

    void aStopEndsWithCancelled()
    {
        const PlanRoad road;
        std::stop_source source;
        source.request_stop();
        const auto plan = makePlan(road.open(), free("smoothquant"), PlanRoad::backend(), source.get_token(), {});
        QCOMPARE(plan.error().code, ErrorCode::Cancelled);
    }
};

QTEST_GUILESS_MAIN(TestMakePlan)
#include "tst_make_plan.moc"
