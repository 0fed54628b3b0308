// What a tensor-parallel degree allows, and what a target lacks. rotation.md 8, exports.md C.0.
#include <QtTest>

#include "core/graph/placement.h"
#include "core/graph/target_capabilities.h"
#include "core/transform/hadamard_orders.h"
#include "tests/support/rewrites.h"

using namespace planish;
using namespace planish::test;

namespace {

Edge rowParallel(std::size_t channels)
{
    Edge edge;
    edge.id = {"layers.0.mlp_down"};
    edge.site = "mlp_down";
    edge.channels = channels;
    edge.producer = ElementwiseProducer{{"layers.0.up_proj"}, {"layers.0.gate_proj"}, {}, false, "silu(gate)*up"};
    edge.consumers.push_back({{"layers.0.down_proj"}, {}, "down_proj", {}, true});
    return edge;
}

Rewrite hadamard(std::size_t channels, std::size_t block)
{
    Rewrite rewrite;
    rewrite.input.operators.push_back(blockHadamardFor(channels, block).value());
    return rewrite;
}

std::string ruleOf(const Edge &edge, const Rewrite &rewrite, int devices, const ModelInfo &model = {})
{
    PlacementContext context;
    context.tensorParallel = devices;
    context.model = &model;
    const Placement placement = place(edge, rewrite, context);
    for (const Refusal &refusal : placement.refusals)
        if (refusal.severity == Refusal::Severity::Error)
            return refusal.rule;
    return {};
}

} // namespace

class TensorParallelTest : public QObject {
    Q_OBJECT

private slots:
    void nineHeadsDoNotDivideOverTwoDevices()
    {
        ModelInfo model;
        model.numHeads = 9;
        model.numKvHeads = 3;
        model.headDim = 64;
        Edge edge = rowParallel(576);
        edge.id = {"layers.2.attn_out"};
        edge.site = "attn_out";
        PlacementContext context;
        context.model = &model;
        context.tensorParallel = 2;
        const Placement placement = place(edge, Rewrite{}, context); // the identity too
        QVERIFY(!placement.legal());
        QCOMPARE(placement.refusals.at(0).sentence,
                 std::string("layers.2.attn_out: 9 heads do not divide over 2 devices (divisibility)"));
        context.tensorParallel = 3;
        QVERIFY(place(edge, Rewrite{}, context).legal());
    }

    void onlyBlocksInsideAShardStayLegal()
    {
        QCOMPARE(ruleOf(rowParallel(64), hadamard(64, 64), 1), std::string());
        QCOMPARE(ruleOf(rowParallel(64), hadamard(64, 64), 2), std::string("crosses_shards"));
        QCOMPARE(ruleOf(rowParallel(64), hadamard(64, 32), 2), std::string());
        QCOMPARE(ruleOf(rowParallel(64), hadamard(64, 32), 4), std::string("crosses_shards"));
        QCOMPARE(ruleOf(rowParallel(64), scaleBy(freeFactors(64)), 4), std::string());
        QCOMPARE(ruleOf(rowParallel(66), Rewrite{}, 4), std::string("divisibility"));
    }

    void aPermutationAcrossShardsIsOfflineOnly()
    {
        QCOMPARE(ruleOf(rowParallel(64), reverseChannels(64), 2), std::string()); // fused into up and gate rows
        Edge unknown = rowParallel(64);
        unknown.producer = UnknownProducer{"x"};
        QCOMPARE(ruleOf(unknown, reverseChannels(64), 2), std::string("crosses_shards"));
    }

    void columnParallelEdgesTakeAnything()
    {
        Edge edge = rowParallel(64);
        edge.site = "mlp_in";
        edge.id = {"layers.0.mlp_in"};
        edge.producer = NormProducer{{"layers.0.norm"}, "rmsnorm", 0, true, false};
        QCOMPARE(ruleOf(edge, hadamard(64, 64), 8), std::string());
    }

    void groupsMustDivideAShard()
    {
        Rewrite rewrite;
        rewrite.specs = SpecPair{};
        rewrite.specs->weight.grid.group = 32;
        QCOMPARE(ruleOf(rowParallel(64), rewrite, 2), std::string());
        QCOMPARE(ruleOf(rowParallel(64), rewrite, 4), std::string("divisibility"));
    }

    void everyTargetOfThePageIsRead()
    {
        const auto targets = loadTargets(std::string(PLANISH_SOURCE_DIR) + "/resources");
        QVERIFY2(targets.has_value(), targets ? "" : toText(targets.error()).c_str());
        const std::vector<std::string> keys{
            "safetensors",    "compressed_tensors", "llm_compressor", "smoothquant", "llm_awq", "spinquant", "flatquant",
            "deepcompressor", "modelopt",           "imatrix",        "llmc",        "duquant", "omniquant", "autoawq",
            "quark",          "autoround",          "quarot",         "vllm"};
        QCOMPARE(targets->size(), keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            QCOMPARE((*targets)[i].key, keys[i]);
        QVERIFY(findTarget(*targets, "vllm")->lintOnly);
        QCOMPARE(findTarget(*targets, "smoothquant")->of("scale"), Fidelity::Exact);
        QCOMPARE(findTarget(*targets, "smoothquant")->of("dense"), Fidelity::Unsupported);
        QVERIFY(!findTarget(*targets, "nosuch"));
    }

    void aTargetRefusesWhatItCannotRun()
    {
        const auto targets = loadTargets(std::string(PLANISH_SOURCE_DIR) + "/resources").value();
        const auto rule = [&](const char *key, const Edge &edge, const Rewrite &rewrite, int devices) {
            PlacementContext context;
            context.capabilities = findTarget(targets, key);
            context.tensorParallel = devices;
            const Placement placement = place(edge, rewrite, context);
            return placement.legal() ? std::string() : placement.refusals.back().rule;
        };
        QCOMPARE(rule("llm_awq", rowParallel(64), hadamard(64, 32), 1), std::string("online"));
        QCOMPARE(rule("vllm", rowParallel(64), hadamard(64, 32), 1), std::string());
        QCOMPARE(rule("vllm", rowParallel(64), hadamard(64, 32), 2), std::string("crosses_shards"));
        QCOMPARE(rule("vllm", rowParallel(64), scaleBy(freeFactors(64)), 2), std::string());
        Edge value = rowParallel(8);
        LinearProducer v;
        v.tensor = {"layers.0.v_proj"};
        v.between = "attention";
        v.outputs = 8;
        value.producer = v;
        QCOMPARE(rule("vllm", value, shiftBy(freeFactors(8)), 1), std::string("bias_has_no_place"));
    }
};

QTEST_GUILESS_MAIN(TensorParallelTest)
#include "tst_tensor_parallel.moc"
