// Edges completed from the family: producers, consumers, other readers, ties, streams.
#include <QtTest>

#include "core/graph/edge_names.h"
#include "tests/support/tiny_models.h"

using namespace planish;
using namespace planish::test;

namespace {

std::string consumersOf(const Edge &edge)
{
    std::string text;
    for (const Consumer &consumer : edge.consumers)
        text += (text.empty() ? "" : " ") + roleOf(consumer.tensor.value);
    return text;
}

} // namespace

class ModelGraphTest : public QObject {
    Q_OBJECT

private slots:
    void everyFamilyOpensWithoutNotesAndWithEveryConsumer()
    {
        for (const auto &family : shippedFamilies().all()) {
            const TinyModel model = tinyModel({.family = family->key});
            QVERIFY2(model.graph.notes.empty(),
                     (family->key + ": " + (model.graph.notes.empty() ? "" : model.graph.notes[0])).c_str());
            for (const Edge &edge : model.graph.edges) {
                const bool linearReaders = edge.site == "attn_in" || edge.site == "attn_out" || edge.site.starts_with("mlp");
                QVERIFY2(!linearReaders || !edge.consumers.empty(), (family->key + " " + edge.id.value).c_str());
                for (const Consumer &consumer : edge.consumers)
                    QVERIFY2(consumer.present, (family->key + " " + consumer.tensor.value).c_str());
            }
        }
    }

    void producersAreWhatTheFamilySays()
    {
        const TinyModel llama = tinyModel({.family = "llama"});
        QCOMPARE(kindOf(llama.edge("layers.1.attn_in").producer), std::string("rmsnorm"));
        QCOMPARE(nameOf(llama.edge("layers.1.attn_out").producer), std::string("layers.1.v_proj"));
        QCOMPARE(kindOf(llama.edge("layers.1.mlp_down").producer), std::string("elementwise"));
        QCOMPARE(kindOf(llama.edge("layers.1.residual").producer), std::string("stream"));
        const auto product = std::get<ElementwiseProducer>(llama.edge("layers.1.mlp_down").producer);
        QCOMPARE(product.gate.value, std::string("layers.1.gate_proj"));
        QCOMPARE(consumersOf(llama.edge("layers.1.mlp_in")), std::string("gate_proj up_proj"));
        QCOMPARE(llama.edge("layers.1.attn_out").ties.count, std::size_t(8));
        QCOMPARE(llama.edge("layers.1.mlp_down").streamWritten, std::string("stream:residual"));
    }

    void fusedProducersAreNamedByWholeTensorAndRows()
    {
        const TinyModel phi3 = tinyModel({.family = "phi3"});
        const auto v = std::get<LinearProducer>(phi3.edge("layers.0.attn_out").producer);
        QCOMPARE(v.tensor.value, std::string("layers.0.qkv_proj"));
        QCOMPARE(v.rows, (RowRangeOf{24, 32}));
        QCOMPARE(nameOf(phi3.edge("layers.0.attn_out").producer), std::string("layers.0.v_proj"));
        const TinyModel gpt2 = tinyModel({.family = "gpt2"});
        QCOMPARE(std::get<LinearProducer>(gpt2.edge("layers.0.attn_out").producer).rows, (RowRangeOf{32, 48}));
    }

    void postNormAddsTheShortcutWhateverTheDumpSays()
    {
        const TinyModel bert = tinyModel({.family = "bert"});
        for (const char *id : {"layers.0.attn_in", "layers.1.attn_in", "layers.1.mlp_in"})
            QCOMPARE(bert.edge(id).otherReaders.at(0).kind, std::string("residual"));
        QCOMPARE(nameOf(bert.edge("layers.0.attn_in").producer), std::string("embeddings.layernorm"));
        QCOMPARE(nameOf(bert.edge("layers.1.attn_in").producer), std::string("layers.0.output_layernorm"));
        QVERIFY(tinyModel({.family = "opt"}).edge("layers.1.attn_in").otherReaders.empty());
        const TinyModel opt = tinyModel({.family = "opt", .postNorm = true});
        QCOMPARE(opt.edge("layers.1.attn_in").otherReaders.size(), std::size_t(1));
        QCOMPARE(nameOf(opt.edge("layers.1.attn_in").producer), std::string("layers.0.final_layer_norm"));
        QCOMPARE(nameOf(opt.edge("layers.1.mlp_in").producer), std::string("layers.1.self_attn_layer_norm"));
    }

    void forgottenReadersStayOtherReaders()
    {
        const TinyModel llama = tinyModel({.family = "llama", .dropConsumers = {"v_proj"}});
        const Edge &edge = llama.edge("layers.0.attn_in");
        QCOMPARE(consumersOf(edge), std::string("q_proj k_proj"));
        QCOMPARE(edge.otherReaders.at(0).name, std::string("layers.0.v_proj"));
        QCOMPARE(tinyModel({.family = "phi", .dropConsumers = {"fc1"}}).edge("layers.0.attn_in").otherReaders.at(0).kind,
                 std::string("parallel_branch"));
        const TinyModel moe = tinyModel({.family = "qwen_moe", .dropConsumers = {"gate", "shared_expert_gate"}});
        QCOMPARE(moe.edge("layers.0.mlp_in").otherReaders.at(0).kind, std::string("router"));
        QCOMPARE(moe.edge("layers.0.mlp_in").otherReaders.at(1).kind, std::string("gate"));
    }

    void routerAndEveryExpertReadTheNormOfAMixture()
    {
        const TinyModel moe = tinyModel({.family = "mixtral"});
        QCOMPARE(moe.edge("layers.0.mlp_in").consumers.size(), std::size_t(9)); // 4 experts x 2 and the router
        QCOMPARE(moe.edge("layers.0.mlp_in").consumers.back().role, std::string("router"));
        QCOMPARE(nameOf(moe.edge("layers.0.experts.3.mlp_down").producer), std::string("layers.0.experts.3.up_proj"));
    }

    void producersThatAreNotInTheFilesAreUnknownByName()
    {
        const TinyModel bert = tinyModel({.family = "bert", .absent = {"embeddings.layernorm"}});
        QCOMPARE(kindOf(bert.edge("layers.0.attn_in").producer), std::string("unknown"));
        QCOMPARE(nameOf(bert.edge("layers.0.attn_in").producer), std::string("embeddings.layernorm"));
        const TinyModel olmo = tinyModel({.family = "olmo"}); // a norm without scale is in no file, and yet known
        QVERIFY(!std::get<NormProducer>(olmo.edge("layers.0.attn_in").producer).hasGain);
    }

    void consumersWithoutWeightsAreListedAsAbsent()
    {
        const TinyModel llama = tinyModel({.family = "llama", .absent = {"layers.{l}.k_proj"}});
        const Edge &edge = llama.edge("layers.0.attn_in");
        QVERIFY(edge.consumers.at(0).present && !edge.consumers.at(1).present);
    }

    void streamsListEveryWriterAndReader()
    {
        const TinyModel gpt2 = tinyModel({.family = "gpt2"});
        const Stream &stream = gpt2.graph.streams.at(0);
        QCOMPARE(stream.writers.size(), std::size_t(6)); // embed, embed_positions, 2 layers x 2
        QCOMPARE(stream.readers.size(), std::size_t(5)); // 2 layers x 2, head
        QCOMPARE(stream.norms.size(), std::size_t(5));
        QCOMPARE(stream.width, std::size_t(16));
    }

    void readersOfAPlanComeFromTheFamilyAlone()
    {
        const auto llama = shippedFamilies().find("llama");
        const auto left =
            uncoveredReaders(*llama, ModelInfo{}, "layers.2.attn_in", 2, "attn_in", {"layers.2.q_proj", "layers.2.k_proj"});
        QCOMPARE(left.size(), std::size_t(1));
        QCOMPARE(left[0].name, std::string("layers.2.v_proj"));
        const auto phi3 = shippedFamilies().find("phi3");
        QVERIFY(uncoveredReaders(*phi3, ModelInfo{}, "layers.2.attn_in", 2, "attn_in",
                                 {"layers.2.q_proj", "layers.2.k_proj", "layers.2.v_proj"})
                    .empty());
        QCOMPARE(uncoveredReaders(*phi3, ModelInfo{}, "layers.2.attn_in", 2, "attn_in", {"layers.2.q_proj"}).size(),
                 std::size_t(1));
        QVERIFY(uncoveredReaders(*phi3, ModelInfo{}, "layers.2.attn_in", 2, "attn_in", {"layers.2.qkv_proj[0:16]"}).empty());
    }
};

QTEST_GUILESS_MAIN(ModelGraphTest)
#include "tst_model_graph.moc"
