// Failure lab, wrong graph: each forgotten reader, tie or shard is refused with edge, other party and rule.
#include <QtTest>

#include "core/graph/placement.h"
#include "core/graph/stream_legality.h"
#include "core/transform/hadamard_orders.h"
#include "tests/support/plan_road.h"
#include "tests/support/rewrites.h"
#include "tests/support/tiny_models.h"

using namespace planish;
using namespace planish::test;

namespace {

Placement placeOn(const TinyModel &model, const std::string &edge, const Rewrite &rewrite)
{
    PlacementContext context;
    context.family = model.family.get();
    context.model = &model.graph.model;
    return place(model.edge(edge), rewrite, context);
}

bool holds(const std::vector<Refusal> &refusals, const std::string &rule)
{
    return std::ranges::any_of(refusals, [&](const Refusal &refusal) { return refusal.rule == rule; });
}

Edge rowParallel(std::size_t channels)
{
    Edge edge;
    edge.id = {"layers.2.mlp_down"};
    edge.site = "mlp_down";
    edge.channels = channels;
    edge.producer = ElementwiseProducer{{"layers.2.up_proj"}, {"layers.2.gate_proj"}, {}, false, "silu(gate)*up"};
    edge.consumers.push_back({{"layers.2.down_proj"}, {}, "down_proj", {}, true});
    return edge;
}

std::vector<Refusal> onDevices(const Edge &edge, const Rewrite &rewrite, int devices)
{
    const ModelInfo model;
    PlacementContext context;
    context.tensorParallel = devices;
    context.model = &model;
    return place(edge, rewrite, context).refusals;
}

Rewrite hadamard(std::size_t channels, std::size_t block)
{
    Rewrite rewrite;
    rewrite.input.operators.push_back(blockHadamardFor(channels, block).value());
    return rewrite;
}

} // namespace

class TestLabGraph : public QObject {
    Q_OBJECT
private slots:
    void routerNotRewritten()
    {
        const TinyModel forgotten = tinyModel({.family = "mixtral", .dropConsumers = {"gate"}});
        const Placement refused = placeOn(forgotten, "layers.1.mlp_in", scaleBy(freeFactors(16)));
        QVERIFY(refused.needsOnline()); // never folded
        QCOMPARE(refused.refusals.at(0).sentence,
                 std::string("layers.1.mlp_in: the router layers.1.gate also reads this edge (router_not_covered)"));
        const TinyModel whole = tinyModel({.family = "mixtral"});
        QVERIFY(!placeOn(whole, "layers.1.mlp_in", scaleBy(freeFactors(16))).needsOnline());
    }

    void residualReadsScaledNorm()
    {
        const TinyModel bert = tinyModel({.family = "bert"}), llama = tinyModel({.family = "llama"});
        const Placement refused = placeOn(bert, "layers.1.mlp_in", scaleBy(freeFactors(16)));
        QVERIFY(holds(refused.refusals, "post_norm") || holds(refused.refusals, "residual_reader"));
        QVERIFY(refused.refusals.at(0).sentence.find("residual reads this edge") != std::string::npos);
        QVERIFY(placeOn(llama, "layers.1.mlp_in", scaleBy(freeFactors(16))).refusals.empty());
    }

    void rotationBeforeRope()
    {
        const TinyModel llama = tinyModel({.family = "llama", .producerOf = "q_pre", .producer = "layers.1.q_proj"});
        Rewrite unequal = scaleBy(std::vector<double>(16, 1.0));
        std::get<ScaleOp>(unequal.input.operators[0].value).divisor[0] = 4.0; // its partner inside the pair stays 1
        QVERIFY(holds(placeOn(llama, "layers.1.q_pre", unequal).refusals, "rope_between"));
        QVERIFY(!holds(placeOn(llama, "layers.1.q_pre", scaleBy(std::vector<double>(16, 2.0))).refusals, "rope_between"));
    }

    void tiedHeadInOldBasis()
    {
        const TinyModel tied = tinyModel({.family = "llama", .tied = true});
        const Stream &stream = tied.graph.streams.at(0);
        StreamFold fold;
        fold.writers = stream.writers;
        fold.readers = stream.readers;
        PlacementContext context;
        context.family = tied.family.get();
        context.model = &tied.graph.model;
        QVERIFY(streamFaults(stream, fold, {}, context).empty());
        fold.headUntied = false; // one table, two bases
        QVERIFY(holds(streamFaults(stream, fold, {}, context), "tied_head"));
        fold.headUntied = true;
        std::erase(fold.readers, EdgeId{"head"});
        QVERIFY(holds(streamFaults(stream, fold, {}, context), "head_left"));
    }

    void queryHeadsNeedSharedFactor()
    {
        const TinyModel llama = tinyModel({.family = "llama"});
        QVERIFY(holds(placeOn(llama, "layers.1.attn_out", scaleBy(freeFactors(16))).refusals, "gqa_repeat"));
        QVERIFY(!placeOn(llama, "layers.1.attn_out", scaleBy(tiedFactors(llama.edge("layers.1.attn_out")))).needsOnline());
    }

    void rotationCrossesShards()
    {
        const auto refused = onDevices(rowParallel(64), hadamard(64, 64), 2);
        QVERIFY(holds(refused, "crosses_shards"));
        QVERIFY(refused.at(0).sentence.starts_with("layers.2.mlp_down: "));
        QVERIFY(!holds(onDevices(rowParallel(64), hadamard(64, 32), 2), "crosses_shards"));
    }

    void groupDoesNotDivideShard()
    {
        Rewrite grouped;
        grouped.specs = SpecPair{};
        grouped.specs->weight.grid.group = 32;
        QVERIFY(holds(onDevices(rowParallel(64), grouped, 4), "divisibility"));
        QVERIFY(!holds(onDevices(rowParallel(64), grouped, 2), "divisibility"));
    }

    void planOfAnotherBasis()
    {
        const PlanRoad road;
        const Plan plan = road.plan();
        QVERIFY(road.apply(plan, road.checkpoint(), road.out()));
        TensorTable tensors = readCheckpoint(road.checkpoint());
        tensors.at("model.layers.0.mlp.up_proj.weight").second[7] += 1.0;
        writeCheckpoint(road.file("other.safetensors"), tensors, StoredType::F16);
        const auto refused = road.apply(plan, road.file("other.safetensors"), road.file("u.safetensors"));
        QVERIFY(!refused);
        QCOMPARE(refused.error().rule, std::string("basis_mismatch"));
    }
};

QTEST_GUILESS_MAIN(TestLabGraph)
#include "tst_lab_graph.moc"
