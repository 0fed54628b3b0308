#include <QtTest>

#include <cmath>

#include "core/run/analysis_csv.h"
#include "core/run/envelope.h"
#include "tests/support/memory_dump.h"

using namespace planish;
using namespace planish::test;
using Json = nlohmann::ordered_json;

namespace {

// What `analyze` needs, on an edge in memory.
Analysis analyzed(const MatrixD &x, const std::function<void(MemoryDump &)> &edit = {}, const AnalyzeRequest &request = {})
{
    auto dump = std::make_shared<MemoryDump>();
    dump->add("layers.0.attn_in", x, StoredType::F32, "attn_in");
    if (edit)
        edit(*dump);
    Opened opened;
    opened.dump = dump;
    auto weights = ResolvedWeights::resolve(dump, nullptr, nullptr, Prefer::None);
    if (!weights)
        qFatal("%s", toText(weights.error()).c_str());
    opened.weights = std::make_shared<ResolvedWeights>(std::move(*weights));
    for (const DumpEdge &stored : dump->info().edges) {
        Edge edge;
        edge.id = stored.id;
        edge.site = stored.site;
        edge.layer = stored.layer;
        edge.channels = stored.channels;
        edge.rows = stored.rows;
        opened.graph.edges.push_back(edge);
    }
    auto analysis = Engine(GlobalOptions{}).analyze(opened, request, {}, {});
    if (!analysis)
        qFatal("%s", toText(analysis.error()).c_str());
    return *analysis;
}

MatrixD trace()
{
    return matrixOf({{1, -.5, 8, 0}, {-1, .5, 7, 0}, {1, .5, 9, 0}, {-1, -.5, -2, 4}});
}

} // namespace

class TestAnalysis : public QObject {
    Q_OBJECT
private slots:
    void objectCarriesEveryFieldOfThePage()
    {
        const Json json = toJson(analyzed(trace()), ArrayDetail::Auto);
        QCOMPARE(json["schema"], "planish.analysis/1");
        const Json &edge = json["edges"][0];
        for (const char *field : {"edge",
                                  "layer",
                                  "site",
                                  "dtype",
                                  "tokens",
                                  "channels",
                                  "rows_in_file",
                                  "masked",
                                  "skipped",
                                  "channel",
                                  "token",
                                  "mean_incoherence",
                                  "max_incoherence",
                                  "concentration",
                                  "max_abs",
                                  "argmax",
                                  "median_abs",
                                  "max_to_median",
                                  "density",
                                  "density_ge",
                                  "tensor_kurtosis",
                                  "energy",
                                  "dead_channels",
                                  "constant_channels",
                                  "top_channels",
                                  "zero_rows",
                                  "nonfinite",
                                  "findings",
                                  "phases"})
            QVERIFY2(edge.contains(field), field);
        for (const char *field :
             {"max_abs", "min", "max", "mean", "energy", "occupancy", "asymmetry", "asymmetry_mean", "kurtosis"})
            QCOMPARE(edge["channel"][field].size(), std::size_t(4));
        for (const char *field : {"row", "max_abs", "energy", "occupancy", "incoherence"})
            QCOMPARE(edge["token"][field].size(), std::size_t(4));
        QVERIFY(!edge["channel"].contains("weight_max"));
        QCOMPARE(edge["argmax"], (Json{{"row", 2}, {"channel", 2}, {"value", 9.0}}));
        QCOMPARE(edge["channel"]["occupancy"], (Json{0.0, 0.0, .75, 0.0}));
        QVERIFY(std::abs(double(edge["channel"]["asymmetry"][2]) - .636364) < 5e-7);
        QCOMPARE(edge["channel"]["asymmetry"][3], 1.0);
        QVERIFY(std::abs(double(edge["concentration"]["c1"]) - .904110) < 5e-7);
        QCOMPARE(edge["concentration"]["r_c1pct"], 1);
        QCOMPARE(edge["top_channels"]["by_energy"], (Json{2, 3, 0, 1}));
    }
    void arraysFollowTheDetailAsked()
    {
        const Analysis one = analyzed(trace());
        const Analysis two =
            analyzed(trace(), [](MemoryDump &dump) { dump.add("layers.1.attn_in", trace(), StoredType::F16, "attn_in", 1); });
        const auto has = [](const Json &json, const char *field) { return json["edges"][0].contains(field); };
        QVERIFY(has(toJson(one, ArrayDetail::Auto), "token") && has(toJson(one, ArrayDetail::Auto), "channel"));
        QVERIFY(!has(toJson(two, ArrayDetail::Auto), "token") && has(toJson(two, ArrayDetail::Auto), "channel"));
        QVERIFY(has(toJson(two, ArrayDetail::All), "token"));
        QVERIFY(!has(toJson(one, ArrayDetail::None), "channel"));
    }
    void undefinedNumbersAreNullWithOneNoteAField()
    {
        const Json json = toJson(analyzed(matrixOf({{0, 0, 3}, {0, 0, 0}, {0, 0, 0}})), ArrayDetail::All);
        const Json &edge = json["edges"][0];
        QVERIFY(edge["max_to_median"].is_null() && edge["zero_median"] == true);
        QCOMPARE(edge["channel"]["asymmetry"], (Json{nullptr, nullptr, 1.0}));
        QCOMPARE(edge["token"]["incoherence"][1], nullptr);
        QCOMPARE(edge["zero_rows"], 2);
        const auto noted = [&](const std::string &field) {
            for (const Json &note : json["notes"])
                if (note.is_object() && note["field"] == field)
                    return note;
            return Json();
        };
        QCOMPARE(noted("max_to_median")["reason"], "zero_median");
        QCOMPARE(noted("channel.asymmetry")["count"], 2);
        QCOMPARE(noted("channel.asymmetry")["first"], 0);
        QCOMPARE(noted("token.incoherence")["first"], 1);
        QVERIFY(noted("energy").is_null());
    }
    void phasesStandApartWhenBothOccur()
    {
        const auto decodeFrom = [](std::size_t first) {
            return [first](MemoryDump &dump) {
                for (std::size_t t = first; t < dump.editInfo().tokens.size(); ++t)
                    dump.editInfo().tokens.phase[t] = 1;
            };
        };
        const Json both = toJson(analyzed(wavyMatrix(40, 4), decodeFrom(30)), ArrayDetail::All)["edges"][0];
        QCOMPARE(both["phases"]["prefill"]["tokens"], 30);
        QCOMPARE(both["phases"]["decode"]["tokens"], 10);
        QCOMPARE(both["phases"]["decode"]["token"]["row"][0], 30);
        QVERIFY(both["notes"].dump().find("10 decode rows") != std::string::npos);
        const Json one = toJson(analyzed(wavyMatrix(40, 4)), ArrayDetail::All)["edges"][0];
        QVERIFY(one["phases"].empty() && one["notes"].empty());
        AnalyzeRequest request;
        request.rows.phase = Phase::Decode;
        QCOMPARE(toJson(analyzed(wavyMatrix(40, 4), decodeFrom(30), request), ArrayDetail::None)["edges"][0]["tokens"], 10);
    }
    void partsRestrictTheRows()
    {
        const auto requests = [](MemoryDump &dump) {
            std::vector<std::int32_t> of;
            for (int r = 0; r < 30; ++r)
                of.push_back(r / 10);
            dump.setRequests(of);
        };
        AnalyzeRequest request;
        request.part = Part::Calibration; // order of requests at seed 0 is 2, 0, 1 (evaluation.md 1.3)
        const Json calibration = toJson(analyzed(wavyMatrix(30, 4), requests, request), ArrayDetail::All)["edges"][0];
        QCOMPARE(calibration["token"]["row"][0], 20);
        QCOMPARE(calibration["skipped"], 20);
        request.part = Part::HeldOut;
        QCOMPARE(toJson(analyzed(wavyMatrix(30, 4), requests, request), ArrayDetail::All)["edges"][0]["token"]["row"][9], 9);
    }
    void otherTauKeepsTheRulesAtSix()
    {
        MatrixD x = wavyMatrix(50, 8);
        for (std::size_t r = 0; r < 50; ++r) {
            for (double &v : x.row(r))
                v = std::fmod(v, 1.0);
            x(r, 3) = r % 5 ? .5 : 6.0;
        }
        AnalyzeRequest request;
        request.tau = 100;
        const Analysis analysis = analyzed(x, {}, request);
        QCOMPARE(analysis.systematic.size(), std::size_t(1));
        QCOMPARE(analysis.systematic[0].channel, 3);
        const auto &findings = analysis.edges[0].findings;
        QVERIFY(std::ranges::any_of(findings,
                                    [](const Finding &f) { return f.id == "persistent_channel.absolute@layers.0.attn_in:3"; }));
        QCOMPARE(toJson(analysis, ArrayDetail::None)["edges"][0]["density"], 0.0);
    }
    void csvHasOneLineAChannelAndARow()
    {
        const Analysis analysis = analyzed(trace());
        const QStringList channels = QString::fromStdString(channelsCsv(analysis.edges[0])).trimmed().split('\n');
        QCOMPARE(channels.size(), 5);
        QCOMPARE(channels[0], QString("channel,max_abs,min,max,mean,energy,occupancy,asymmetry,asymmetry_mean,kurtosis"));
        QVERIFY(channels[3].startsWith("2,9,-2,9,5.5,198,0.75,"));
        const QStringList tokens = QString::fromStdString(tokensCsv(analysis.edges[0])).trimmed().split('\n');
        QCOMPARE(tokens[0], QString("row,request,position,max_abs,energy,occupancy,incoherence"));
        QVERIFY(tokens[4].startsWith("3,0,3,4,21.25,0,1.7354"));
        QTemporaryDir folder;
        auto written = writeAnalysisCsv(analysis, folder.filePath("new").toStdString());
        QVERIFY(written && written->size() == 3);
        QVERIFY(QFile::exists(folder.filePath("new/layers.0.attn_in.channels.csv")) &&
                QFile::exists(folder.filePath("new/findings.csv")));
    }
    void findingCellsAreQuoted()
    {
        MatrixD x = wavyMatrix(40, 60);
        for (double &v : x.values())
            v = std::fmod(v, 1.0);
        x(3, 4) = 900;
        const QString text = QString::fromStdString(findingsCsv(analyzed(x)));
        QVERIFY(text.contains("\"value_outlier@layers.0.attn_in:3,4\",value_outlier,layers.0.attn_in,\"{\"\"channel\"\":4,"));
    }
};

QTEST_GUILESS_MAIN(TestAnalysis)
#include "tst_analysis.moc"
