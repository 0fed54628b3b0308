// The sample against numbers by NumPy (tests/golden/analyze_sample.json): statistics, concentration, findings, systematic
// dimension.
#include <QtTest>

#include <cmath>
#include <fstream>
#include <numeric>

#include "core/geometry/analysis_units.h"
#include "core/geometry/findings.h"

using namespace planish;
using Json = nlohmann::json;

namespace {

Json golden()
{
    std::ifstream in(PLANISH_GOLDEN_DIR "/analyze_sample.json");
    return Json::parse(in);
}

std::shared_ptr<const Dump> sample()
{
    static const auto dump = openDump(PLANISH_SAMPLE_DIR "/smollm2.h5", {});
    if (!dump)
        qFatal("%s", toText(dump.error()).c_str());
    return *dump;
}

Statistics measured(const DumpEdge &edge, bool withUnits = true)
{
    const Dump &dump = *sample();
    const auto rows = countedRows(dump.info().tokens, edge, {});
    StatisticsRequest request;
    auto split = makeSplit(dump.info().tokens, {}, dump.info().file);
    const AnalysisUnits units = split && withUnits ? analysisUnits(*split, edge, rows) : AnalysisUnits{};
    askForUnits(units, request);
    auto statistics = computeStatistics(dump, edge, rows, request, {});
    if (!statistics)
        qFatal("%s", toText(statistics.error()).c_str());
    markCalibration(units, *statistics);
    return *statistics;
}

std::vector<Finding> findings(const DumpEdge &dumpEdge)
{
    Opened opened;
    opened.dump = sample();
    auto weights = ResolvedWeights::resolve(opened.dump, nullptr, nullptr, Prefer::None);
    if (!weights)
        qFatal("%s", toText(weights.error()).c_str());
    opened.weights = std::make_shared<ResolvedWeights>(std::move(*weights));
    Edge edge;
    edge.id = dumpEdge.id;
    edge.site = dumpEdge.site;
    edge.layer = dumpEdge.layer;
    for (const std::string &name : dumpEdge.consumers) {
        Consumer consumer;
        consumer.tensor = {name};
        consumer.present = opened.weights->find({name}) != nullptr;
        edge.consumers.push_back(consumer);
    }
    auto found = findOn(opened, edge, measured(dumpEdge), RuleThresholds::defaults(), {}, {});
    if (!found)
        qFatal("%s", toText(found.error()).c_str());
    return *found;
}

void compareClose(double actual, double expected, const std::string &what)
{
    QVERIFY2(std::abs(actual - expected) <= 1e-11 * std::abs(expected) + 1e-300,
             qPrintable(QString("%1: %2 is not %3").arg(what.c_str()).arg(actual, 0, 'g', 17).arg(expected, 0, 'g', 17)));
}

std::vector<int> channelsOf(const std::vector<Finding> &all, const std::string &scope)
{
    std::vector<int> channels;
    for (const Finding &f : all)
        if (f.kind == "persistent_channel" && f.rule.scope == scope)
            channels.push_back(f.where["channel"]);
    std::ranges::sort(channels);
    return channels;
}

void addEdges()
{
    QTest::addColumn<QString>("name");
    const Json edges = golden()["edges"];
    for (const auto &[name, numbers] : edges.items())
        QTest::newRow(name.c_str()) << QString::fromStdString(name);
}

} // namespace

class TestSample : public QObject {
    Q_OBJECT
private slots:
    void statisticsEqualTheIndependentNumbers_data() { addEdges(); }
    void statisticsEqualTheIndependentNumbers()
    {
        QFETCH(QString, name);
        const Json want = golden()["edges"][name.toStdString()];
        const DumpEdge &edge = *sample()->info().findEdge({name.toStdString()});
        const Statistics s = measured(edge);
        QCOMPARE(s.tokens, want["tokens"].get<std::uint64_t>());
        QCOMPARE(s.maxAbs, want["max_abs"].get<double>());
        QCOMPARE(Json({s.argmaxRow, s.argmaxChannel, s.argmaxValue}), want["argmax"]);
        QCOMPARE(s.medianAbs, want["median_abs"].get<double>());
        compareClose(*s.maxToMedian(), want["max_to_median"], "max_to_median");
        compareClose(s.energy(), want["energy"], "energy");
        compareClose(*s.tensor.kurtosis(), want["tensor_kurtosis"], "tensor_kurtosis");
        compareClose(*s.meanIncoherence(), want["mean_incoherence"], "mean_incoherence");
        compareClose(s.incoherenceMax, want["max_incoherence"], "max_incoherence");
        const Concentration c = concentrationOf(s);
        compareClose(*c.c1, want["c1"], "c1");
        compareClose(*c.c8, want["c8"], "c8");
        compareClose(*c.c1pct, want["c1pct"], "c1pct");
        QCOMPARE(c.r1pct, want["r_c1pct"].get<std::size_t>());
        auto order = channelsByEnergy(s);
        order.resize(8);
        QCOMPARE(Json(order), want["by_energy"]);
        const double elements = double(s.tokens * s.channels);
        QCOMPARE(double(std::accumulate(s.channel.overTau.begin(), s.channel.overTau.end(), 0ull)) / elements,
                 want["density"].get<double>());
    }
    void channelsEqualTheIndependentNumbers_data() { addEdges(); }
    void channelsEqualTheIndependentNumbers()
    {
        QFETCH(QString, name);
        const Statistics s = measured(*sample()->info().findEdge({name.toStdString()}));
        const Json channels = golden()["edges"][name.toStdString()]["channel"];
        for (const auto &[text, want] : channels.items()) {
            const std::size_t k = std::stoul(text);
            QCOMPARE(s.channel.minimum[k], want["min"].get<double>());
            QCOMPARE(s.channel.maximum[k], want["max"].get<double>());
            compareClose(s.channel.energy[k], want["energy"], "energy " + text);
            compareClose(*s.channel.moments[k].kurtosis(), want["kurtosis"], "kurtosis " + text);
            QCOMPARE(double(s.channel.overTau[k]) / double(s.tokens), want["occupancy"].get<double>());
        }
    }
    void findingsAreThoseTheRulesAskFor_data() { addEdges(); }
    void findingsAreThoseTheRulesAskFor()
    {
        QFETCH(QString, name);
        const Json want = golden()["edges"][name.toStdString()];
        const auto all = findings(*sample()->info().findEdge({name.toStdString()}));
        QCOMPARE(Json(channelsOf(all, "absolute")), want["absolute"]);
        QCOMPARE(Json(channelsOf(all, "relative")), want["relative"]);
        Json rare = Json::array(), massive = Json::array();
        for (const Finding &f : all) {
            if (f.kind == "rare_token")
                rare.push_back(f.where["row"]);
            if (f.kind == "massive_activation" && !f.soft)
                massive.push_back({f.where["row"], f.where["channel"]});
            QVERIFY(f.stability && *f.stability >= 0 && *f.stability <= 1);
        }
        std::sort(rare.begin(), rare.end());
        std::sort(massive.begin(), massive.end());
        QCOMPARE(rare, want["rare"]);
        QCOMPARE(massive, want["massive"]);
    }
    void superWeightsAreTheKnownTwo()
    {
        const Json weights = golden()["super_weights"];
        for (const auto &[name, want] : weights.items()) {
            const std::string edge = name.substr(0, name.rfind('.')) + ".mlp_down";
            const auto all = findings(*sample()->info().findEdge({edge}));
            const auto found = std::ranges::find(all, "super_weight_candidate", &Finding::kind);
            QVERIFY(found != all.end());
            QCOMPARE(found->where["row"], want["row"]);
            QCOMPARE(found->where["column"], want["column"]);
            QCOMPARE(found->where["weight"], want["weight"]);
            compareClose(found->where["share"], want["share"], name + " share");
            compareClose(found->value, want["output"], name + " output");
        }
    }
    void theOneSystematicDimensionIs247()
    {
        std::vector<Statistics> statistics;
        std::vector<std::pair<std::int64_t, const Statistics *>> inputs;
        for (const DumpEdge &edge : sample()->info().edges)
            if (edge.site == "attn_in" || edge.site == "mlp_in")
                statistics.push_back(measured(edge, false)), inputs.emplace_back(edge.layer, nullptr);
        for (std::size_t i = 0; i < inputs.size(); ++i)
            inputs[i].second = &statistics[i];
        const auto found = systematicDimensions(inputs);
        const Json want = golden()["systematic"];
        QCOMPARE(found.size(), want.size());
        QCOMPARE(found[0].channel, 247);
        QCOMPARE(Json(found[0].layers), want[0]["layers"]);
        compareClose(found[0].layerFraction, want[0]["layer_fraction"], "layer_fraction");
        compareClose(found[0].positionFractionAll, want[0]["position_fraction_all"], "position_fraction_all");
        compareClose(found[0].positionFractionAffected, want[0]["position_fraction_affected"], "position_fraction_affected");
    }
};

QTEST_GUILESS_MAIN(TestSample)
#include "tst_sample.moc"
