// Dump names onto stored tensors: patterns, prefixes, fused rows, Conv1D, stacked experts, tied heads, conflicts.
#include <QtTest>

#include "core/names/resolver.h"
#include "tests/support/memory_tensors.h"

using namespace planish;
using namespace planish::test;

namespace {

std::shared_ptr<const Family> familyOf(const char *key)
{
    static const FamilyList list = FamilyList::load(std::string(PLANISH_SOURCE_DIR) + "/resources").value();
    return list.find(key);
}

/// hidden 8, 4 query heads and 2 key-value heads of 2, ffn 6.
ModelInfo tinyModel()
{
    ModelInfo model;
    model.hiddenSize = 8;
    model.numHeads = 4;
    model.numKvHeads = 2;
    model.headDim = 2;
    model.ffnSize = 6;
    return model;
}

std::shared_ptr<TensorDump> dumpOf(const ModelInfo &model = tinyModel())
{
    auto dump = std::make_shared<TensorDump>();
    dump->editInfo().model = model;
    return dump;
}

std::string errorOf(const Expected<ResolvedWeights> &result)
{
    return result ? std::string("no error") : toText(result.error());
}

} // namespace

class ResolverTest : public QObject {
    Q_OBJECT

private slots:
    void prefixesAreStripped()
    {
        for (const char *prefix : {"", "model.", "language_model.model."}) {
            auto checkpoint = std::make_shared<MemoryCheckpoint>();
            checkpoint->addWavy(std::string(prefix) + "layers.3.self_attn.q_proj.weight", {8, 8});
            checkpoint->addWavy(std::string(prefix) + "layers.3.self_attn.q_proj.bias", {8});
            const auto weights = ResolvedWeights::resolve(dumpOf(), checkpoint, familyOf("llama"), Prefer::None);
            QVERIFY2(weights.has_value(), errorOf(weights).c_str());
            QVERIFY(weights->find({"layers.3.q_proj"}));
            QCOMPARE(weights->biasOf("layers.3.q_proj"), std::string("layers.3.q_proj.bias"));
            QVERIFY(weights->unmatched().empty());
        }
    }

    void fusedRowsAreQThenKThenV()
    {
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("model.layers.0.self_attn.qkv_proj.weight", {16, 8}); // q 8, k 4, v 4
        checkpoint->addWavy("model.layers.0.mlp.gate_up_proj.weight", {12, 8});
        const auto weights = ResolvedWeights::resolve(dumpOf(), checkpoint, familyOf("phi3"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        const MatrixD whole = weights->read({"layers.0.qkv_proj"}).value();
        const MatrixD v = weights->read({"layers.0.v_proj"}).value();
        QCOMPARE(v.rows(), std::size_t(4));
        for (std::size_t r = 0; r < 4; ++r)
            for (std::size_t c = 0; c < 8; ++c)
                QCOMPARE(v(r, c), whole(12 + r, c));
        const ResolvedTensor *up = weights->find({"layers.0.up_proj"});
        QCOMPARE(up->rows.begin, std::int64_t(6));
        QCOMPARE(up->rows.end, std::int64_t(12));
        QVERIFY(weights->unmatched().empty());
    }

    void conv1dIsTurnedAndItsColumnsSplit()
    {
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("transformer.h.1.attn.c_attn.weight", {8, 24}); // stored [in, out]
        checkpoint->addWavy("transformer.h.1.attn.c_attn.bias", {24});
        checkpoint->addWavy("transformer.h.1.attn.c_proj.weight", {8, 8}); // square: only the family knows
        const auto weights = ResolvedWeights::resolve(dumpOf(), checkpoint, familyOf("gpt2"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        const MatrixD stored = checkpoint->readMatrix(*checkpoint->info().find("transformer.h.1.attn.c_attn.weight")).value();
        const MatrixD v = weights->read({"layers.1.v_proj"}).value();
        QCOMPARE(v.rows(), std::size_t(8));
        QCOMPARE(v(3, 5), stored(5, 16 + 3));
        const MatrixD bias = weights->read({"layers.1.v_proj.bias"}).value();
        const MatrixD all = weights->read({"layers.1.c_attn.bias"}).value();
        QCOMPARE(bias.cols(), std::size_t(8));
        QCOMPARE(bias(0, 3), all(0, 16 + 3));
        const MatrixD square = checkpoint->readMatrix(*checkpoint->info().find("transformer.h.1.attn.c_proj.weight")).value();
        QCOMPARE(weights->read({"layers.1.c_proj"}).value()(2, 6), square(6, 2));
    }

    void rowsInterleavedPerHeadAreGathered()
    {
        ModelInfo model = tinyModel();
        model.numKvHeads = 4;
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("transformer.h.0.self_attention.query_key_value.weight", {24, 8}); // [head, q k v, 2]
        const auto weights = ResolvedWeights::resolve(dumpOf(model), checkpoint, familyOf("bloom"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        const MatrixD whole = weights->read({"layers.0.query_key_value"}).value();
        const MatrixD v = weights->read({"layers.0.v_proj"}).value();
        QCOMPARE(v.rows(), std::size_t(8));
        for (std::size_t head = 0; head < 4; ++head)
            for (std::size_t d = 0; d < 2; ++d)
                QCOMPARE(v(head * 2 + d, 4), whole(head * 6 + 4 + d, 4));
    }

    void stackedExpertsAreGateFirstThenUp()
    {
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("model.layers.0.mlp.experts.gate_up_proj", {3, 12, 8});
        checkpoint->addWavy("model.layers.0.mlp.experts.down_proj", {3, 8, 6});
        const auto weights = ResolvedWeights::resolve(dumpOf(), checkpoint, familyOf("mixtral"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        QVERIFY(!weights->find({"layers.0.experts.3.up_proj"}));
        StoredTensor flat = *checkpoint->info().find("model.layers.0.mlp.experts.gate_up_proj");
        flat.shape = {36, 8};
        const MatrixD all = checkpoint->readMatrix(flat).value();
        QCOMPARE(weights->read({"layers.0.experts.2.up_proj"}).value()(1, 4), all(2 * 12 + 6 + 1, 4));
        QCOMPARE(weights->read({"layers.0.experts.1.gate_proj"}).value()(0, 0), all(12, 0));
        QCOMPARE(weights->read({"layers.0.experts.1.down_proj"}).value().rows(), std::size_t(8));
    }

    void tiedHeadIsTheTable()
    {
        ModelInfo model = tinyModel();
        model.tiedEmbeddings = true;
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("model.embed_tokens.weight", {10, 8});
        const auto tied = ResolvedWeights::resolve(dumpOf(model), checkpoint, familyOf("llama"), Prefer::None);
        QVERIFY(tied->find({"head"})->tied);
        QVERIFY(tied->read({"head"}).value() == tied->read({"embed"}).value());
        checkpoint->addWavy("lm_head.weight", {10, 8});
        const auto own = ResolvedWeights::resolve(dumpOf(model), checkpoint, familyOf("llama"), Prefer::None);
        QVERIFY(!own->find({"head"})->tied);
    }

    void exactDumpNamesAndLeftoversAreTold()
    {
        auto dump = dumpOf();
        dump->edge("x", 0, "other", 8, "", {"my_linear"});
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("my_linear", {5, 8});
        checkpoint->addWavy("layers.0.o_proj", {8, 8}); // a dump name as it stands
        checkpoint->addWavy("rotary_emb.inv_freq", {4});
        const auto weights = ResolvedWeights::resolve(dump, checkpoint, familyOf("llama"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        QVERIFY(weights->find({"my_linear"}) && weights->find({"layers.0.o_proj"}));
        QCOMPARE(weights->unmatched(), std::vector<std::string>{"rotary_emb.inv_freq"});
    }

    void bothPresentMustAgreeUnlessPreferred()
    {
        auto dump = dumpOf();
        MatrixD own = wavyMatrix(8, 8, 5);
        dump->weight("layers.0.q_proj", own);
        auto same = std::make_shared<MemoryCheckpoint>();
        same->add("model.layers.0.self_attn.q_proj.weight", own, {8, 8});
        const auto agreed = ResolvedWeights::resolve(dump, same, familyOf("llama"), Prefer::None);
        QVERIFY2(agreed.has_value(), errorOf(agreed).c_str());
        QVERIFY(!agreed->find({"layers.0.q_proj"})->inDump); // --weights stands first
        own(3, 2) += 1e-9;
        auto other = std::make_shared<MemoryCheckpoint>();
        other->add("model.layers.0.self_attn.q_proj.weight", own, {8, 8});
        const auto refused = ResolvedWeights::resolve(dump, other, familyOf("llama"), Prefer::None);
        QVERIFY(!refused);
        QVERIFY2(errorOf(refused).find("layers.0.q_proj") != std::string::npos &&
                     errorOf(refused).find("[3, 2]") != std::string::npos,
                 errorOf(refused).c_str());
        const auto weights = ResolvedWeights::resolve(dump, other, familyOf("llama"), Prefer::Weights);
        QCOMPARE(weights->read({"layers.0.q_proj"}).value()(3, 2), own(3, 2));
        const auto dumped = ResolvedWeights::resolve(dump, other, familyOf("llama"), Prefer::Dump);
        QVERIFY(dumped->find({"layers.0.q_proj"})->inDump);
    }

    void widthDecidesOrientationAndAMisfitNamesBothShapes()
    {
        auto dump = dumpOf();
        dump->edge("layers.0.mlp_down", 0, "mlp_down", 6, "", {"layers.0.down_proj"});
        auto turned = std::make_shared<MemoryCheckpoint>();
        turned->addWavy("model.layers.0.mlp.down_proj.weight", {6, 8}); // stored [in, out]
        const auto weights = ResolvedWeights::resolve(dump, turned, familyOf("llama"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        QCOMPARE(weights->read({"layers.0.down_proj"}).value().rows(), std::size_t(8));
        auto wrong = std::make_shared<MemoryCheckpoint>();
        wrong->addWavy("model.layers.0.mlp.down_proj.weight", {8, 7});
        const std::string text = errorOf(ResolvedWeights::resolve(dump, wrong, familyOf("llama"), Prefer::None));
        QVERIFY2(text.find("[8, 7]") != std::string::npos && text.find("[4, 6]") != std::string::npos, text.c_str());
    }

    void aMisfitInsideADumpIsLeftOutAndNoted()
    {
        auto dump = dumpOf();
        dump->edge("layers.0.mlp_down", 0, "mlp_down", 6, "", {"layers.0.down_proj"});
        dump->weight("layers.0.down_proj", wavyMatrix(8, 7));
        const auto weights = ResolvedWeights::resolve(dump, nullptr, familyOf("llama"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        QVERIFY(!weights->find({"layers.0.down_proj"}));
        QCOMPARE(weights->notes().size(), std::size_t(1));
        QVERIFY(weights->notes()[0].find("[8, 7]") != std::string::npos);
    }

    void configAndModelMustAgree()
    {
        auto dump = dumpOf();
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        ModelInfo config = tinyModel();
        config.numHeads = 8;
        checkpoint->editInfo().config = config;
        const std::string text = errorOf(ResolvedWeights::resolve(dump, checkpoint, familyOf("llama"), Prefer::None));
        QVERIFY2(text.find("num_attention_heads is 8") != std::string::npos && text.find("4") != std::string::npos, text.c_str());
        config = tinyModel();
        config.vocabSize = 99;
        checkpoint->editInfo().config = config;
        QCOMPARE(ResolvedWeights::resolve(dump, checkpoint, familyOf("llama"), Prefer::None)->model().vocabSize,
                 std::int64_t(99));
    }

    void normsComeWithTheirBiasFromEitherSide()
    {
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("encoder.layer.0.attention.output.LayerNorm.gamma", {8});
        checkpoint->addWavy("encoder.layer.0.attention.output.LayerNorm.beta", {8});
        const auto stored = ResolvedWeights::resolve(dumpOf(), checkpoint, familyOf("bert"), Prefer::None);
        const auto norm = stored->norm({"layers.0.attention_layernorm"}).value();
        QVERIFY(norm.has_value());
        QCOMPARE(norm->kind, std::string("layernorm"));
        QCOMPARE(norm->bias.size(), std::size_t(8));
        auto dump = dumpOf();
        dump->editInfo().norms["layers.0.input_layernorm"] = {"rmsnorm", 1, 1e-6, {1, 2, 3}, {}};
        const auto dumped = ResolvedWeights::resolve(dump, nullptr, familyOf("gemma"), Prefer::None);
        QCOMPARE(dumped->norm({"layers.0.input_layernorm"}).value()->offset, 1);
        QCOMPARE(dumped->read({"layers.0.input_layernorm"}).value().cols(), std::size_t(3));
        QVERIFY(!dumped->norm({"layers.9.input_layernorm"}).value().has_value());
    }

    void aFusedWeightInsideADumpHasItsPartsToo()
    {
        auto dump = dumpOf();
        dump->weight("layers.0.c_attn", wavyMatrix(24, 8), "layers.0.c_attn");
        dump->bias("layers.0.c_attn", wavyMatrix(1, 24));
        const auto weights = ResolvedWeights::resolve(dump, nullptr, familyOf("gpt2"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        QCOMPARE(weights->read({"layers.0.v_proj"}).value()(2, 3), wavyMatrix(24, 8)(18, 3));
        QCOMPARE(weights->read({"layers.0.v_proj.bias"}).value()(0, 2), wavyMatrix(1, 24)(0, 18));
    }

    void headsThatAreUnknownLeaveThePartsOut()
    {
        auto dump = dumpOf(ModelInfo{});
        auto checkpoint = std::make_shared<MemoryCheckpoint>();
        checkpoint->addWavy("model.layers.0.self_attn.qkv_proj.weight", {16, 8});
        checkpoint->addWavy("model.layers.0.mlp.gate_up_proj.weight", {12, 8});
        const auto weights = ResolvedWeights::resolve(dump, checkpoint, familyOf("phi3"), Prefer::None);
        QVERIFY2(weights.has_value(), errorOf(weights).c_str());
        QVERIFY(weights->find({"layers.0.qkv_proj"}) && !weights->find({"layers.0.v_proj"}));
        QCOMPARE(weights->find({"layers.0.up_proj"})->rows.begin, std::int64_t(6)); // halves need no heads
        QVERIFY(!weights->notes().empty());
    }
};

QTEST_GUILESS_MAIN(ResolverTest)
#include "tst_resolver.moc"
