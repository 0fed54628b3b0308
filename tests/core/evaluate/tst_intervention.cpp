#include <QtTest>

#include <cmath>

#include "core/evaluate/edge_data.h"
#include "core/evaluate/intervention.h"
#include "kernels/backend_list.h"
#include "tests/support/candidates.h"
#include "tests/support/weighted_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

struct Bench {
    Opened opened;
    EvaluateOptions options;
    std::shared_ptr<const EdgeData> data;

    Bench(Opened o, EvaluateOptions settings, const char *backend = "reference")
        : opened(std::move(o)), options(std::move(settings))
    {
        auto loaded = loadEdgeData(opened, opened.graph.edges.front(), options, *makeBackend(backend), {});
        if (!loaded)
            throw std::runtime_error(toText(loaded.error()));
        data = *loaded;
    }
    Expected<Intervention> attempt(const std::string &target, const std::string &action, const InterventionOptions &asked) const
    {
        auto place = parseTarget(target);
        auto what = parseAction(action);
        if (!place || !what)
            throw std::runtime_error(toText(place ? what.error() : place.error()));
        return intervene(*data, *place, *what, asked, {}, {});
    }
    Intervention run(const std::string &target, const std::string &action, const InterventionOptions &asked) const
    {
        auto result = attempt(target, action, asked);
        if (!result)
            throw std::runtime_error(toText(result.error()));
        return *result;
    }
};

InterventionOptions all(std::size_t control = 0)
{
    return {.part = Part::All, .control = control, .seed = 0, .specs = {}};
}

InterventionOptions under(const std::string &act, const std::string &weight, std::size_t control = 0)
{
    const Candidate candidate = candidateOf("none", act, weight);
    return {.part = Part::HeldOut, .control = control, .seed = 0, .specs = SpecPair{candidate.act, candidate.weight, {}}};
}

std::vector<std::int32_t> threeRequests(std::size_t rowsEach)
{
    std::vector<std::int32_t> requests;
    for (std::size_t i = 0; i < 3 * rowsEach; ++i)
        requests.push_back(static_cast<std::int32_t>(i / rowsEach));
    return requests;
}

/// ||X' W'^T - X W^T|| / ||X W^T|| by the definition, consumers stacked.
double changeOf(const MatrixD &x, const std::vector<MatrixD> &weights, const MatrixD &changedX,
                const std::vector<MatrixD> &changedWeights)
{
    double error = 0, reference = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        for (std::size_t m = 0; m < x.rows(); ++m) {
            for (std::size_t n = 0; n < weights[i].rows(); ++n) {
                double before = 0, after = 0;
                for (std::size_t k = 0; k < x.cols(); ++k) {
                    before += x(m, k) * weights[i](n, k);
                    after += changedX(m, k) * changedWeights[i](n, k);
                }
                error += (after - before) * (after - before);
                reference += before * before;
            }
        }
    }
    return std::sqrt(error / reference);
}

bool near(double value, double expected, double relative = 1e-10)
{
    return std::abs(value - expected) <= relative * std::abs(expected);
}

const MatrixD kGranularX = matrixOf({{.5, -.875, 14, .25}, {.875, .25, -7, -.4375}});
const MatrixD kGranularW = matrixOf({{.5, -.25, .125, .875}, {-.875, .75, .0625, .5}, {.25, .4375, -.125, -.375}});
const double kGranularY2 = 2.4375 * 2.4375 + .09375 * .09375 + 2.1015625 * 2.1015625 + .8828125 * .8828125 + 1.234375 * 1.234375 +
                           1.3671875 * 1.3671875; // Y of diagonal.md 2.4

/// diagonal.md 2.4: both rows calibrate and are measured.
Bench granularities()
{
    EvaluateOptions options;
    options.rows.fitRows = {{0, 2}};
    options.rows.scoreRows = {{0, 2}};
    return Bench(openedOf(kGranularX, {kGranularW}), options);
}

struct Wavy {
    MatrixD x = wavyMatrix(48, 200);
    std::vector<MatrixD> weights{wavyMatrix(12, 200, 2), wavyMatrix(20, 200, 3)};
    Bench bench(const char *backend = "reference") const { return Bench(openedOf(x, weights, threeRequests(16)), {}, backend); }
};

std::string list(const std::string &kind, int begin, int end)
{
    std::string text = kind + ":";
    for (int i = begin; i < end; ++i)
        text += (i == begin ? "" : ",") + std::to_string(i);
    return text;
}

} // namespace

class TestIntervention : public QObject {
    Q_OBJECT
private slots:
    void badTargetsAreRefused_data()
    {
        QTest::addColumn<QString>("text");
        for (const char *text : {"", "channels", "channels:", "channels:3,", "channels:-1", "channels:x", "rows:1", "value:1",
                                 "value:1,2,3", "weight:1,2", "weight:,1,2", "weight:w,1", "finding:", "positions:1.5"})
            QTest::newRow(text) << text;
    }
    void badTargetsAreRefused()
    {
        QFETCH(QString, text);
        const auto target = parseTarget(text.toStdString());
        QVERIFY(!target);
        QVERIFY(target.error().code == ErrorCode::Usage);
    }
    void targetsReadFromText()
    {
        QCOMPARE(parseTarget("channels:3,247")->indices, (std::vector<std::int64_t>{3, 247}));
        const auto weight = parseTarget("weight:layers.2.down_proj,507,90");
        QVERIFY(weight->kind == TargetKind::Weight);
        QCOMPARE(weight->name, std::string("layers.2.down_proj"));
        QCOMPARE(weight->row, std::int64_t{507});
        QCOMPARE(weight->column, std::int64_t{90});
        QCOMPARE(parseTarget("finding:a@b:1,2")->name, std::string("a@b:1,2"));
    }
    void actionsReadBack()
    {
        for (const char *text : {"zero", "mean", "clip=8", "clip=0.5", "preserve", "isolate", "write_back"})
            QCOMPARE(textOf(*parseAction(text)), std::string(text));
        for (const char *text : {"", "clip", "clip=", "clip=-1", "clip=nan", "clip=inf", "clip=8x", "Zero"})
            QVERIFY2(!parseAction(text), text);
    }
    void findingsNameTheirPlace()
    {
        Finding finding;
        finding.id = "x";
        finding.where = {{"channel", 7}};
        QCOMPARE(targetOf(finding)->indices, std::vector<std::int64_t>{7});
        finding.where = {{"row", 4}, {"request", 1}, {"position", 0}, {"text", "a"}};
        QVERIFY(targetOf(finding)->kind == TargetKind::Tokens);
        finding.where = {{"row", 4}, {"channel", 7}, {"value", 300.0}};
        QVERIFY(targetOf(finding)->kind == TargetKind::Value);
        finding.where = {{"consumer", "layers.0.w0"}, {"row", 1}, {"column", 2}, {"weight", -2.0}};
        QVERIFY(targetOf(finding)->kind == TargetKind::Weight);
        QCOMPARE(targetOf(finding)->name, std::string("layers.0.w0"));
        finding.where = {{"head", 3}};
        QVERIFY(!targetOf(finding));
    }

    void zeroedChannelsChangeTheOutputByTheirProduct_data()
    {
        QTest::addColumn<QString>("backend");
        QTest::addColumn<double>("tolerance");
        QTest::newRow("reference") << "reference" << 1e-10;
        QTest::newRow("cpu") << "cpu" << 1e-6;
    }
    void zeroedChannelsChangeTheOutputByTheirProduct()
    {
        QFETCH(QString, backend);
        QFETCH(double, tolerance);
        const Wavy wavy;
        MatrixD changed = wavy.x;
        for (std::size_t m = 0; m < changed.rows(); ++m)
            changed(m, 5) = changed(m, 17) = 0;
        const Intervention result = wavy.bench(backend.toUtf8().constData()).run("channels:17,5", "zero", all());
        const double expected = changeOf(wavy.x, wavy.weights, changed, wavy.weights);
        QVERIFY(near(result.fullPrecision->relativeFrobenius, expected, tolerance));
        QCOMPARE(result.effect, result.fullPrecision->relativeFrobenius);
        QCOMPARE(result.rows, std::int64_t{48});
        QCOMPARE(result.fullPrecision->perConsumer.size(), std::size_t{2});
        QVERIFY(!result.quantized);
    }
    void meanIsThatOfCalibrationRows()
    {
        const Wavy wavy;
        const Bench bench = wavy.bench();
        const MatrixD &calibration = bench.data->parts().calibration.x();
        QVERIFY(calibration.rows() < wavy.x.rows());
        std::vector<double> means(200, 0.0);
        for (std::size_t m = 0; m < calibration.rows(); ++m)
            for (std::size_t k = 0; k < 200; ++k)
                means[k] += calibration(m, k) / static_cast<double>(calibration.rows());
        MatrixD channel = wavy.x, token = wavy.x;
        for (std::size_t m = 0; m < 48; ++m)
            channel(m, 3) = means[3];
        std::ranges::copy(means, token.row(30).begin());
        QVERIFY(near(bench.run("channels:3", "mean", all()).effect, changeOf(wavy.x, wavy.weights, channel, wavy.weights)));
        QVERIFY(near(bench.run("tokens:30", "mean", all()).effect, changeOf(wavy.x, wavy.weights, token, wavy.weights)));
        MatrixD row = wavy.weights[1];
        double sum = 0;
        for (const double value : row.row(4))
            sum += value;
        row(4, 9) = sum / 200;
        QVERIFY(near(bench.run("weight:layers.0.w1,4,9", "mean", all()).effect,
                     changeOf(wavy.x, wavy.weights, wavy.x, {wavy.weights[0], row})));
    }
    void clipBoundsTheTargetAlone()
    {
        const Wavy wavy;
        MatrixD value = wavy.x, positions = wavy.x;
        value(20, 7) = std::clamp(value(20, 7), -.01, .01);
        for (const std::size_t m : {2, 18, 34}) // position 2 of the three requests
            for (double &x : positions.row(m))
                x = std::clamp(x, -.5, .5);
        const Bench bench = wavy.bench();
        QVERIFY(near(bench.run("value:20,7", "clip=0.01", all()).effect, changeOf(wavy.x, wavy.weights, value, wavy.weights)));
        QVERIFY(
            near(bench.run("positions:2", "clip=0.5", all()).effect, changeOf(wavy.x, wavy.weights, positions, wavy.weights)));
        QCOMPARE(bench.run("channels:7", "clip=1000", all()).effect, 0.0);
    }
    void superWeightCarriesItsOutput() // diagonal.md 1.5
    {
        const Bench bench(
            openedOf(matrixOf({{0, 0, 0, 0}, {.2, .1, 300, -.1}, {0, 0, 0, 0}}), {matrixOf({{.01, .02, -2, .03}})}, {0, 1, 2}),
            {});
        const Intervention result = bench.run("weight:layers.0.w0,0,2", "zero", all(20));
        QVERIFY(near(result.effect, 1.0000017, 1e-7));
        QVERIFY(near(result.fullPrecision->maxAbs, 600));
        QVERIFY(*result.control.max < 1e-5); // the other three weights carry .001 together
        QCOMPARE(result.fullPrecision->worstToken.row, std::int64_t{1});
    }

    void preservedChannelLeavesSteps_data()
    {
        QTest::addColumn<QString>("act");
        QTest::addColumn<double>("before");
        QTest::newRow("token") << "int4:token" << .357422; // diagonal.md 2.4
        QTest::newRow("tensor") << "int4:tensor" << .390988;
        QTest::newRow("static tensor") << "int4:tensor:static" << .390988; // the rows that calibrate are those measured
    }
    void preservedChannelLeavesSteps()
    {
        QFETCH(QString, act);
        QFETCH(double, before);
        const Intervention result = granularities().run("channels:2", "preserve", under(act.toStdString(), "none"));
        QVERIFY(std::abs(result.quantized->before - before) < 1e-6);
        // Without 14 and -7 the step is .125 and only -.4375 is no multiple of it: -3.5 goes to -4.
        const double expected = .0625 * std::sqrt(.875 * .875 + .5 * .5 + .375 * .375) / std::sqrt(kGranularY2);
        QVERIFY(near(result.quantized->after, expected));
        QVERIFY(near(result.effect, expected - result.quantized->before));
        QVERIFY(!result.fullPrecision);
    }
    void preservedRowIsExact()
    {
        const Bench bench = granularities();
        QVERIFY(near(bench.run("tokens:0", "preserve", under("int4:token", "none")).quantized->after,
                     bench.run("tokens:1", "isolate", under("int4:token", "none")).quantized->after));
        QCOMPARE(bench.run("tokens:0,1", "preserve", under("int4:token", "none")).quantized->after, 0.0);
    }
    void isolatedPartsShareTheSteps()
    {
        const Bench bench = granularities();
        const InterventionOptions specs = under("int4:token", "none");
        // 14 and -7 are seven steps each: the outlier makes the error and has none.
        QCOMPARE(bench.run("channels:2", "isolate", specs).quantized->after, 0.0);
        const Intervention others = bench.run("channels:0,1,3", "isolate", specs);
        QVERIFY(near(others.quantized->after, others.quantized->everything));
        QCOMPARE(others.quantized->before, 0.0);
    }
    void writtenBackWeightIsExact()
    {
        // Only W[1, 2] = .0625 is no multiple of its row's step .125; half a step goes to 0.
        const Intervention result =
            granularities().run("weight:layers.0.w0,1,2", "write_back", under("int4:token", "int4:row", 20));
        QVERIFY(near(result.quantized->before, .0625 * std::sqrt(14. * 14 + 7 * 7) / std::sqrt(kGranularY2)));
        QCOMPARE(result.quantized->after, 0.0);
        QCOMPARE(result.control.sets, std::size_t{20});
        QCOMPARE(*result.control.max, 0.0);
        QVERIFY(!result.ratio);
    }
    void zeroedChannelIsQuantizedAsZero()
    {
        const Intervention result = granularities().run("channels:2", "zero", under("int4:token", "none"));
        MatrixD changed = kGranularX;
        changed(0, 2) = changed(1, 2) = 0;
        changed(1, 3) = -.5; // -3.5 steps of .125 go to -4
        QVERIFY(near(result.quantized->after, changeOf(kGranularX, {kGranularW}, changed, {kGranularW})));
        QVERIFY(result.fullPrecision.has_value());
    }

    void controlLeavesTheTargetOut_data()
    {
        QTest::addColumn<QString>("target");
        QTest::addColumn<QString>("rest");
        const auto row = [](const char *name, const std::string &target, const std::string &rest) {
            QTest::newRow(name) << QString::fromStdString(target) << QString::fromStdString(rest);
        };
        row("half of the channels", list("channels", 0, 100), list("channels", 100, 200));
        row("half of the rows", list("tokens", 0, 24), list("tokens", 24, 48));
        row("half of the positions", list("positions", 0, 8), list("positions", 8, 16));
    }
    void controlLeavesTheTargetOut() // what is left has just the target's size: every random target is the rest
    {
        QFETCH(QString, target);
        QFETCH(QString, rest);
        const Bench bench = Wavy{}.bench();
        const Intervention result = bench.run(target.toStdString(), "zero", all(3));
        const double expected = bench.run(rest.toStdString(), "zero", all()).effect;
        QCOMPARE(result.control.sets, std::size_t{3});
        for (const double value : result.control.values)
            QVERIFY(near(value, expected));
        QVERIFY(near(*result.ratio, result.effect / expected));
        QVERIFY(*result.control.standardDeviation < 1e-10);
    }
    void controlOfOneElementIsAnother()
    {
        const Bench bench(openedOf(matrixOf({{1, 2}, {0, 0}, {0, 0}}), {matrixOf({{3, 5}})}, {0, 1, 2}), {});
        const Intervention weight = bench.run("weight:layers.0.w0,0,0", "zero", all(10));
        QVERIFY(near(weight.effect, 3. / 13));
        for (const double value : weight.control.values)
            QVERIFY(near(value, 10. / 13));
        const Intervention channel = bench.run("channels:1", "zero", all(10));
        for (const double value : channel.control.values)
            QVERIFY(near(value, 3. / 13));
        QVERIFY(near(*channel.ratio, 10. / 3));
    }
    void controlNeedsRoomBesideTheTarget()
    {
        const Intervention result = granularities().run("channels:0,1,2", "isolate", under("int4:token", "none", 50));
        QCOMPARE(result.control.sets, std::size_t{0});
        QVERIFY(!result.control.mean && !result.ratio);
        QVERIFY(!result.notes.empty());
    }
    void controlFollowsTheSeed()
    {
        const Bench bench = Wavy{}.bench();
        InterventionOptions options = all(8);
        const auto first = bench.run("channels:3", "zero", options).control.values;
        QCOMPARE(bench.run("channels:3", "zero", options).control.values, first);
        options.seed = 1;
        QVERIFY(bench.run("channels:3", "zero", options).control.values != first);
    }

    void wrongPlacesAreNamed_data()
    {
        QTest::addColumn<QString>("target");
        QTest::addColumn<QString>("action");
        QTest::addColumn<QString>("word");
        QTest::newRow("channel") << "channels:200"
                                 << "zero"
                                 << "200";
        QTest::newRow("row of the file") << "tokens:48"
                                         << "zero"
                                         << "48";
        QTest::newRow("position") << "positions:16"
                                  << "zero"
                                  << "16";
        QTest::newRow("weight row") << "weight:layers.0.w0,12,0"
                                    << "zero"
                                    << "layers.0.w0";
        QTest::newRow("weight name") << "weight:layers.0.w9,0,0"
                                     << "zero"
                                     << "layers.0.w9";
        QTest::newRow("no specs") << "channels:0"
                                  << "preserve"
                                  << "preserve";
    }
    void wrongPlacesAreNamed()
    {
        QFETCH(QString, target);
        QFETCH(QString, action);
        QFETCH(QString, word);
        const auto result = Wavy{}.bench().attempt(target.toStdString(), action.toStdString(), all());
        QVERIFY(!result);
        QVERIFY(result.error().code == ErrorCode::Usage);
        QVERIFY2(QString::fromStdString(toText(result.error())).contains(word), toText(result.error()).c_str());
    }
    void rowsOfAnotherPartAreRefused()
    {
        const Bench bench = Wavy{}.bench();
        const std::int64_t row = bench.data->parts().calibration.rows().front();
        InterventionOptions options = all();
        options.part = Part::HeldOut;
        QVERIFY(!bench.attempt("tokens:" + std::to_string(row), "zero", options));
        options.part = Part::Calibration;
        QVERIFY(bench.attempt("tokens:" + std::to_string(row), "zero", options).has_value());
        options.part = Part::Sealed; // never sealed rows alone
        QVERIFY(!bench.attempt("channels:0", "zero", options));
    }
    void writeBackNeedsWeights()
    {
        const auto result = granularities().attempt("tokens:0", "write_back", under("int4:token", "int4:row"));
        QVERIFY(!result && result.error().code == ErrorCode::Usage);
    }
};

QTEST_GUILESS_MAIN(TestIntervention)
#include "tst_intervention.moc"
