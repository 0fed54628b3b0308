// Failure lab, wrong algebra: each defect is planted on purpose and must be caught; the right version beside it must pass.
#include <QtTest>

#include "core/graph/placement.h"
#include "core/graph/stream_legality.h"
#include "core/transform/equivalence.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/operators.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

/// X, W, b of one reader and a transform of them, with room for a planted defect.
struct Pair {
    MatrixD x = randomMatrix(40, 24, "x"), weight = randomMatrix(10, 24, "w"), bias = randomMatrix(1, 10, "b");
    MatrixD xPrime, transformed, transformedBias;

    explicit Pair(const Transform &t)
        : xPrime(applyToActivations(t, x.view())), transformed(*applyToWeights(t, weight.view())),
          transformedBias(applyToBias(t, weight.view(), &bias))
    {
    }
    Equivalence measure(double kappa = 1.0, StoredType type = StoredType::F16) const
    {
        return *measureEquivalence(*PlanRoad::backend(), x.view(), xPrime.view(),
                                   {{"layers.0.q_proj", &weight, &transformed, &bias, &transformedBias, type, false}}, kappa);
    }
};

Edge behindNorm(int offset)
{
    Edge edge;
    edge.id = {"layers.0.mlp_in"};
    edge.layer = 0;
    edge.site = "mlp_in";
    edge.channels = 1;
    edge.producer = NormProducer{{"layers.0.input_layernorm"}, "rmsnorm", offset, true, false};
    edge.consumers.push_back({{"layers.0.up_proj"}, {}, "up_proj", {}, true});
    return edge;
}

std::shared_ptr<const Operator> kroneckerFactor(std::size_t order, const char *id)
{
    return std::make_shared<const Operator>(Operator{denseWithKappa(order, 2.0, id)});
}

bool holds(const std::vector<Refusal> &refusals, const std::string &rule)
{
    return std::ranges::any_of(refusals, [&](const Refusal &refusal) { return refusal.rule == rule; });
}

} // namespace

class TestLabAlgebra : public QObject {
    Q_OBJECT
private slots:
    void inverseWithoutTranspose()
    {
        const DenseOp dense = denseWithKappa(24, 3.0, "lab");
        Pair planted(Transform{{}, {Operator{dense}}});
        QVERIFY(planted.measure(3.0).passed);
        planted.transformed = times(planted.weight, dense.inverse); // W P^-1 for W P^-T
        QVERIFY(!planted.measure(3.0).passed);
        const Operator h = *blockHadamardFor(24, 8); // symmetric and orthogonal: the same mistake is invisible
        Pair blind(Transform{{}, {h}});
        blind.transformed = applyToActivations(Transform{{}, {h}}, blind.weight.view());
        QVERIFY(blind.measure().passed);
    }

    void biasFromScaledWeight()
    {
        const Transform t{std::vector<double>(24, 1.5), {Operator{ScaleOp{std::vector<double>(24, 2.0)}}}};
        Pair planted(t);
        QVERIFY(planted.measure().passed);
        planted.transformedBias = applyToBias(t, planted.transformed.view(), &planted.bias); // W' c for W c
        QVERIFY(!planted.measure().passed);
    }

    void offsetNormDividesStoredWeight()
    {
        Rewrite half;
        half.input.operators.push_back({ScaleOp{{2.0}}});
        for (const int offset : {0, 1}) {
            const Placement placement = place(behindNorm(offset), half, {});
            QVERIFY(placement.legal() && !placement.needsOnline());
        }
        // stored .5: the gain is 1.5 and must become .75, so -.25 is stored; .5 / 2 would leave a gain of 1.25
        const PlanRoad road("gemma");
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const auto before = readCheckpoint(road.checkpoint()), after = readCheckpoint(road.out());
        const auto edge =
            std::ranges::find_if(plan.assignments, [](const Assignment &a) { return a.edge.value == "layers.0.mlp_in"; });
        QVERIFY(edge != plan.assignments.end());
        const auto &scale = std::get<ScaleOp>(edge->rewrite->input.operators.at(0).value).divisor;
        std::size_t norms = 0;
        for (const auto &[name, tensor] : before) {
            if (name != "model.layers.0.pre_feedforward_layernorm.weight" &&
                name != "model.layers.0.post_attention_layernorm.weight")
                continue;
            ++norms;
            for (std::size_t k = 0; k < scale.size(); ++k) {
                const double right = (1 + tensor.second[k]) / scale[k] - 1;
                QVERIFY(std::abs(after.at(name).second[k] - right) <= 1e-3 * std::max(1.0, std::abs(right)));
            }
        }
        QCOMPARE(norms, std::size_t(1));
    }

    void scaleAppliedTwice()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        const auto again = road.apply(plan, road.out(), road.file("twice.safetensors"));
        QVERIFY(!again);
        QCOMPARE(again.error().rule, std::string("basis_already_applied"));
    }

    void sylvesterTwiceCancels()
    {
        const Operator h = *blockHadamardFor(24, 8);
        const Pair twice(Transform{{}, {h, h}});
        QVERIFY(twice.measure().passed); // no equivalence test can see it
        QVERIFY(distance(twice.xPrime, twice.x) < 1e-12);
        const PlanRoad road; // so the basis hash has to: metadata stripped, the tensors alone give it away
        const Plan plan = road.plan();
        orThrow(road.apply(plan, road.checkpoint(), road.out()));
        writeCheckpoint(road.file("stripped.safetensors"), readCheckpoint(road.out()), StoredType::F16);
        const auto again = road.apply(plan, road.file("stripped.safetensors"), road.file("twice.safetensors"));
        QVERIFY(!again && again.error().rule.starts_with("basis_"));
    }

    void kroneckerOrderSwapped()
    {
        const auto first = kroneckerFactor(4, "a"), second = kroneckerFactor(6, "b");
        Pair planted(Transform{{}, {Operator{KroneckerOp{first, second}}}});
        QVERIFY(planted.measure(4.0).passed);
        planted.transformed = *applyToWeights(Transform{{}, {Operator{KroneckerOp{second, first}}}}, planted.weight.view());
        QVERIFY(!planted.measure(4.0).passed);
    }

    void rmsNormModelCentred()
    {
        const PlanRoad road;
        const Opened opened = road.open();
        const Stream &stream = opened.graph.streams.at(0);
        StreamFold fold;
        fold.writers = stream.writers;
        fold.readers = stream.readers;
        PlacementContext context;
        const auto family = opened.families.find("llama");
        context.family = family.get();
        context.model = &opened.graph.model;
        QVERIFY(!holds(streamFaults(stream, fold, {}, context), "mean_centring_of_an_rmsnorm_model"));
        fold.meanRemoved = true;
        QVERIFY(holds(streamFaults(stream, fold, {}, context), "mean_centring_of_an_rmsnorm_model"));
    }

    void illConditionedPassesDouble()
    {
        const double kappa = 3.1e4;
        const Pair planted(Transform{{}, {Operator{denseWithKappa(24, kappa, "ill")}}});
        const Equivalence e = planted.measure(kappa, StoredType::Bf16);
        QVERIFY(e.passed);        // in double, scaled by its own kappa
        QVERIFY(!e.storedPassed); // W' rounded once to bfloat16
        QVERIFY(Pair(Transform{{}, {Operator{denseWithKappa(24, 1.5, "well")}}}).measure(1.5, StoredType::Bf16).storedPassed);
        const PlanRoad road;
        Plan plan = road.plan();
        plan.assignments.at(0).conditioning.kappaNonDiagonal = kappa;
        const CheckResult result = orThrow(checkPlan(road.planFile(), plan, {}, 1, {}, families()));
        QVERIFY(std::ranges::any_of(result.findings, [](const CheckFinding &finding) { return finding.rule == "conditioning"; }));
    }

    void deadChannelScaleOverflows()
    {
        auto fit = fitOf(matrixOf({{0, 4}, {0, 1}}), {matrixOf({{1, 1}})}, "int8:token", "int8:row");
        const auto official = fitMethod(*fit, "smoothquant", {"variant=official"});
        const auto ours = fitMethod(*fit, "smoothquant");
        QCOMPARE(std::get<ScaleOp>(official->input.operators.front().value).divisor.at(0), 1e-5);
        QCOMPARE(std::get<ScaleOp>(ours->input.operators.front().value).divisor.at(0), 1.0);
        QCOMPARE(ours->clamps.at("dead_channels"), std::int64_t{1});
        const PlanRoad road; // a factor that carries a gain out of float16 is refused, and nothing is written
        Plan plan = road.plan();
        Rewrite rewrite = *plan.assignments[0].rewrite;
        std::get<ScaleOp>(rewrite.input.operators[0].value).divisor[3] = 1e-9;
        plan.assignments[0].rewrite = std::make_shared<const Rewrite>(rewrite);
        const auto result = road.apply(plan, road.checkpoint(), road.out());
        QVERIFY(!result);
        QCOMPARE(result.error().rule, std::string("overflow"));
    }
};

QTEST_GUILESS_MAIN(TestLabAlgebra)
#include "tst_lab_algebra.moc"
