// The table of diagonal.md 0.5 and rotation.md 9, one row per producer; prefixes, lists of folds, sentences, severities.
#include <QtTest>

#include "core/graph/placement.h"
#include "core/transform/hadamard_orders.h"
#include "tests/support/rewrites.h"
#include "tests/support/tiny_models.h"

using namespace planish;
using namespace planish::test;

namespace {

Placement placeOn(const TinyModel &model, const Edge &edge, const Rewrite &rewrite)
{
    PlacementContext context;
    context.family = model.family.get();
    context.model = &model.graph.model;
    return place(edge, rewrite, context);
}

Edge edgeWith(Producer producer, std::size_t channels = 8, const std::string &site = "mlp_in")
{
    Edge edge;
    edge.id = {"layers.0." + site};
    edge.layer = 0;
    edge.site = site;
    edge.channels = channels;
    edge.producer = std::move(producer);
    edge.consumers.push_back({{"layers.0.reader"}, {}, "reader", "layers.0.reader.bias", true});
    return edge;
}

NormProducer norm(bool gain, bool bias, int offset = 0)
{
    return {{"layers.0.norm"}, bias ? "layernorm" : "rmsnorm", offset, gain, bias};
}

LinearProducer linear(const std::string &between, bool bias = true)
{
    LinearProducer producer;
    producer.tensor = {"layers.0.linear"};
    producer.between = between;
    producer.hasBias = bias;
    producer.outputs = 8;
    return producer;
}

Rewrite hadamard(std::size_t channels, std::size_t block)
{
    Rewrite rewrite;
    rewrite.input.operators.push_back(blockHadamardFor(channels, block).value());
    return rewrite;
}

std::string text(const std::vector<std::string> &words)
{
    std::string all;
    for (const std::string &word : words)
        all += (all.empty() ? "" : " ") + word;
    return all;
}

} // namespace

Q_DECLARE_METATYPE(Producer)

class PlacementTest : public QObject {
    Q_OBJECT

private slots:
    void producerTable_data()
    {
        QTest::addColumn<Producer>("producer");
        QTest::addColumn<QString>("scale"); // "" = fused, else the rule that keeps it online
        QTest::addColumn<QString>("shift");
        QTest::newRow("LayerNorm with bias") << Producer(norm(true, true)) << ""
                                             << "";
        QTest::newRow("LayerNorm or RMSNorm without bias") << Producer(norm(true, false)) << ""
                                                           << "norm_without_bias";
        QTest::newRow("offset RMSNorm") << Producer(norm(true, false, 1)) << ""
                                        << "norm_without_bias";
        QTest::newRow("norm without learned scale") << Producer(norm(false, false)) << "norm_without_scale"
                                                    << "norm_without_bias";
        QTest::newRow("linear") << Producer(linear("identity")) << ""
                                << "";
        QTest::newRow("v_proj through attention") << Producer(linear("attention")) << ""
                                                  << "";
        QTest::newRow("up of act(gate)*up") << Producer(ElementwiseProducer{
                                                   {"layers.0.up"}, {"layers.0.gate"}, {}, false, "silu(gate)*up"})
                                            << ""
                                            << "nonlinearity_between";
        QTest::newRow("fc1 through ReLU") << Producer(linear("relu")) << ""
                                          << "nonlinearity_between";
        QTest::newRow("fc1 through GELU") << Producer(linear("gelu")) << "nonlinearity_between"
                                          << "nonlinearity_between";
        QTest::newRow("fc1 through SiLU") << Producer(linear("silu")) << "nonlinearity_between"
                                          << "nonlinearity_between";
        QTest::newRow("residual sum") << Producer(StreamProducer{{"stream:residual"}}) << "residual_reader"
                                      << "residual_reader";
        QTest::newRow("unknown producer") << Producer(UnknownProducer{"layers.4.output_layernorm"}) << "producer_unknown"
                                          << "producer_unknown";
    }
    void producerTable()
    {
        QFETCH(Producer, producer);
        QFETCH(QString, scale);
        QFETCH(QString, shift);
        const Edge edge = edgeWith(producer);
        const bool stream = std::holds_alternative<StreamProducer>(producer);
        const std::pair<Rewrite, QString> cases[] = {{scaleBy(freeFactors(8)), scale}, {shiftBy(freeFactors(8)), shift}};
        for (const auto &[rewrite, rule] : cases) {
            const Placement placement = place(edge, rewrite, {});
            QCOMPARE(placement.needsOnline(), !rule.isEmpty());
            QCOMPARE(QString::fromStdString(placement.refusals.empty() ? std::string() : placement.refusals[0].rule), rule);
            QCOMPARE(placement.legal(), !stream); // nothing but a whole-stream change helps a stream; elsewhere online does
        }
    }

    void identityChangesNothing()
    {
        for (const Producer &producer : {Producer(norm(false, false)), Producer(UnknownProducer{}), Producer(linear("gelu"))}) {
            const Placement placement = place(edgeWith(producer), Rewrite{}, {});
            QVERIFY(placement.legal() && !placement.needsOnline());
            QVERIFY(placement.fused.empty() && placement.fusedInto.empty() && placement.refusals.empty());
        }
    }

    void longestPrefixIsFusedTheRestRunsInOrder()
    {
        Rewrite rewrite = scaleBy(freeFactors(8));
        rewrite.input.operators.push_back(hadamard(8, 8).input.operators[0]);
        rewrite.input.operators.push_back(scaleBy(freeFactors(8)).input.operators[0]);
        const Placement placement = place(edgeWith(norm(true, false)), rewrite, {});
        QCOMPARE(placement.fusedOperators, std::size_t(1));
        QCOMPARE(placement.online.size(), std::size_t(2));
        QVERIFY(std::holds_alternative<HadamardOp>(placement.online[0].value));
        QVERIFY(placement.legal());
        QCOMPARE(placement.refusals.at(0).rule, std::string("norm_gain_between"));
        QCOMPARE(text(placement.fusedInto), std::string("layers.0.norm layers.0.reader"));
    }

    void aShiftThatStaysKeepsEverythingBehindIt()
    {
        Rewrite rewrite = shiftBy(freeFactors(8));
        rewrite.input.operators = scaleBy(freeFactors(8)).input.operators;
        const Placement placement = place(edgeWith(norm(true, false)), rewrite, {});
        QVERIFY(!placement.shiftFused && placement.shiftStaysOnline);
        QCOMPARE(placement.fusedOperators, std::size_t(0));
        QCOMPARE(placement.online.size(), std::size_t(1));
        const Placement fused = place(edgeWith(norm(true, true)), rewrite, {});
        QVERIFY(fused.shiftFused && !fused.needsOnline());
    }

    void foldsAreListedProducerFirstThenColumnsAndBiases()
    {
        Rewrite rewrite = shiftBy(freeFactors(8));
        rewrite.input.operators = scaleBy(freeFactors(8)).input.operators;
        Edge edge = edgeWith(linear("attention", false), 8, "attn_out");
        edge.consumers[0].bias.clear();
        const Placement placement = place(edge, rewrite, {});
        QCOMPARE(placement.fused.size(), std::size_t(3));
        QCOMPARE(placement.fused[0].how, FusedFactor::How::ProducerRows);
        QVERIFY(placement.fused[0].createsBias); // the shift needs a bias v does not have
        QCOMPARE(placement.fused[1].how, FusedFactor::How::ConsumerColumns);
        QCOMPARE(placement.fused[2].how, FusedFactor::How::ConsumerBias);
        QVERIFY(placement.fused[2].createsBias);
    }

    void rowsOfAFusedTensorAreNamed()
    {
        const TinyModel phi3 = tinyModel({.family = "phi3"});
        const Edge &edge = phi3.edge("layers.0.attn_out");
        QCOMPARE(text(placeOn(phi3, edge, scaleBy(tiedFactors(edge))).fusedInto),
                 std::string("layers.0.qkv_proj[24:32] layers.0.o_proj"));
        const Edge &down = phi3.edge("layers.0.mlp_down");
        QVERIFY(!placeOn(phi3, down, scaleBy(freeFactors(24))).needsOnline());
    }

    void interleavedRowsStayUntouched()
    {
        const TinyModel bloom = tinyModel({.family = "bloom"});
        const Placement placement = placeOn(bloom, bloom.edge("layers.0.attn_out"), scaleBy(freeFactors(16)));
        QCOMPARE(placement.refusals.at(0).rule, std::string("fused_rows"));
        QVERIFY(placement.legal() && placement.needsOnline());
    }

    void onlyUpRowsTakeAScaleGateRowsFollowAPermutation()
    {
        const TinyModel llama = tinyModel({.family = "llama"});
        const Edge &edge = llama.edge("layers.1.mlp_down");
        QCOMPARE(text(placeOn(llama, edge, scaleBy(freeFactors(24))).fusedInto),
                 std::string("layers.1.up_proj layers.1.down_proj"));
        QCOMPARE(text(placeOn(llama, edge, reverseChannels(24)).fusedInto),
                 std::string("layers.1.up_proj layers.1.gate_proj layers.1.down_proj"));
    }

    void headwiseRotationsAreFusedIntoTheValues()
    {
        const TinyModel llama = tinyModel({.family = "llama"});
        const Edge &edge = llama.edge("layers.1.attn_out");
        QVERIFY(!placeOn(llama, edge, hadamard(16, 4)).needsOnline()); // R2: inside a head of 4
        QVERIFY(!placeOn(llama, edge, hadamard(16, 2)).needsOnline());
        const Placement across = placeOn(llama, edge, hadamard(16, 8));
        QCOMPARE(across.refusals.at(0).rule, std::string("head_mixing_cannot_fold"));
        QVERIFY(across.legal() && across.needsOnline());
        Rewrite signs = hadamard(16, 4);
        std::get<HadamardOp>(signs.input.operators[0].value).signs = {1, 1, 1, 1, -1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        QCOMPARE(placeOn(llama, edge, signs).refusals.at(0).rule, std::string("gqa_repeat"));
    }

    void unknownHeadsKeepGroupedScalesOnline()
    {
        const TinyModel llama = tinyModel({.family = "llama", .heads = false});
        const Placement placement = placeOn(llama, llama.edge("layers.1.attn_out"), scaleBy(freeFactors(16)));
        QCOMPARE(placement.refusals.at(0).rule, std::string("gqa_repeat"));
        QVERIFY(placement.needsOnline());
    }

    void missingConsumersAndBadFactorsAreErrors()
    {
        Edge edge = edgeWith(norm(true, false));
        edge.consumers[0].present = false;
        QCOMPARE(place(edge, Rewrite{}, {}).refusals.at(0).rule, std::string("consumers_missing"));
        QVERIFY(!place(edge, Rewrite{}, {}).legal());
        std::vector<double> s = freeFactors(8);
        for (const double bad : {0.0, std::nan(""), HUGE_VAL}) {
            s[2] = bad;
            const Placement placement = place(edgeWith(norm(true, false)), scaleBy(s), {});
            QVERIFY(!placement.legal());
            QCOMPARE(placement.refusals.at(0).rule, std::string("non_finite_factor"));
            QVERIFY(placement.refusals.at(0).sentence.find("channel 2") != std::string::npos);
        }
    }

    void sentencesNameEdgeOtherPartyAndRule()
    {
        const TinyModel moe = tinyModel({.family = "mixtral", .dropConsumers = {"gate"}});
        const Edge &edge = moe.edge("layers.1.mlp_in");
        QCOMPARE(placeOn(moe, edge, scaleBy(freeFactors(16))).refusals.at(0).sentence,
                 std::string("layers.1.mlp_in: the router layers.1.gate also reads this edge (router_not_covered)"));
        const TinyModel bert = tinyModel({.family = "bert"});
        const std::string shortcut =
            placeOn(bert, bert.edge("layers.1.mlp_in"), scaleBy(freeFactors(16))).refusals.at(0).sentence;
        QVERIFY2(shortcut.find("residual reads this edge") != std::string::npos, shortcut.c_str());
    }

    void aKeyWithoutBiasNeedsNoneWithoutRope()
    {
        const TinyModel whisper = tinyModel({.family = "whisper"});
        const Placement placement = placeOn(whisper, whisper.edge("layers.1.attn_in"), shiftBy(freeFactors(16)));
        QVERIFY(placement.legal() && !placement.needsOnline());
        std::string biases;
        for (const FusedFactor &factor : placement.fused)
            if (factor.how == FusedFactor::How::ConsumerBias)
                biases += factor.tensor.value + (factor.createsBias ? "+ " : " ");
        QCOMPARE(biases, std::string("layers.1.q_proj layers.1.v_proj "));
    }

    void aClaimedFoldThatStaysOnlineIsAnError()
    {
        PlacementContext claimed;
        claimed.foldClaimed = true;
        QVERIFY(!place(edgeWith(linear("gelu")), scaleBy(freeFactors(8)), claimed).legal());
        QVERIFY(place(edgeWith(linear("identity")), scaleBy(freeFactors(8)), claimed).legal());
    }
};

QTEST_GUILESS_MAIN(PlacementTest)
#include "tst_placement.moc"
