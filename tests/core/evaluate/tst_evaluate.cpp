#include <QtTest>

#include <cmath>

#include "core/evaluate/edge_data.h"
#include "kernels/backend_list.h"
#include "tests/support/candidates.h"
#include "tests/support/weighted_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

EvaluateOptions explicitRows(std::int64_t fitEnd, std::int64_t scoreBegin, std::int64_t scoreEnd)
{
    EvaluateOptions options;
    options.rows.fitRows = {{0, fitEnd}};
    options.rows.scoreRows = {{scoreBegin, scoreEnd}};
    return options;
}

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
    Evaluation evaluate(const Candidate &candidate) const
    {
        auto evaluation = evaluateCandidate(opened, *data, candidate, options, {}, {});
        if (!evaluation)
            throw std::runtime_error(toText(evaluation.error()));
        return *evaluation;
    }
};

/// diagonal.md 2.4.
Bench granularities()
{
    return Bench(openedOf(matrixOf({{.5, -.875, 14, .25}, {.875, .25, -7, -.4375}}),
                          {matrixOf({{.5, -.25, .125, .875}, {-.875, .75, .0625, .5}, {.25, .4375, -.125, -.375}})}),
                 explicitRows(2, 0, 2));
}

std::vector<std::int32_t> requestsOf(std::size_t requests, std::size_t rowsEach)
{
    std::vector<std::int32_t> list;
    for (std::size_t i = 0; i < requests * rowsEach; ++i)
        list.push_back(static_cast<std::int32_t>(i / rowsEach));
    return list;
}

Bench wavy(std::size_t requests = 8)
{
    return Bench(
        openedOf(wavyMatrix(requests * 16, 32), {wavyMatrix(12, 32, 2), wavyMatrix(20, 32, 3)}, requestsOf(requests, 16)), {});
}

} // namespace

class TestEvaluate : public QObject {
    Q_OBJECT
private slots:
    void granularitiesMatchTheTrace_data()
    {
        QTest::addColumn<QString>("act");
        QTest::addColumn<QString>("weight");
        QTest::addColumn<double>("relative");
        QTest::newRow("tensor") << "int4:tensor"
                                << "none" << .390988;
        QTest::newRow("token") << "int4:token"
                               << "none" << .357422;
        QTest::newRow("channel") << "int4:channel"
                                 << "none" << .049174;
        QTest::newRow("group") << "int4:group2"
                               << "none" << .142100;
        QTest::newRow("token, weights per row cancel") << "int4:token"
                                                       << "int4:row" << .268829;
    }
    void granularitiesMatchTheTrace()
    {
        QFETCH(QString, act);
        QFETCH(QString, weight);
        QFETCH(double, relative);
        const Evaluation e = granularities().evaluate(candidateOf("none", act.toStdString(), weight.toStdString()));
        QVERIFY2(e.status == EvaluationStatus::Ok, e.reason.c_str());
        QVERIFY2(std::abs(e.output->relativeFrobenius - relative) < 1e-6,
                 qPrintable(QString::number(e.output->relativeFrobenius, 'g', 9)));
    }
    void channelSharingIsAnalysisOnly()
    {
        QVERIFY(granularities().evaluate(candidateOf("none", "int4:channel", "none")).analysisOnly);
        QVERIFY(!wavy().evaluate(candidateOf("none", "int4:token", "none")).analysisOnly);
    }
    void sharedScaleErasesOrdinaryValues() // diagonal.md 1.7: A = 64, u = 1
    {
        const Bench bench(openedOf(matrixOf({{64, 1}, {64, 1}}), {matrixOf({{0, 1}})}), explicitRows(1, 1, 2));
        const Evaluation four = bench.evaluate(candidateOf("none", "int4:token", "none"));
        QCOMPARE(four.activation->zeroedFraction, .5);
        QVERIFY(std::abs(four.activation->zeroedEnergy - 1 / 4097.) < 1e-12);
        QVERIFY(std::abs(four.output->maxAbs - 1) < 1e-12); // the value itself is the error
        const Evaluation eight = bench.evaluate(candidateOf("none", "int8:token", "none"));
        QCOMPARE(eight.activation->zeroedFraction, .0);
        QVERIFY(std::abs(eight.output->maxAbs - .007874) < 1e-6);
    }
    void identityWithoutQuantizersHasNoError()
    {
        const Evaluation e = wavy().evaluate(candidateOf("none", "none", "none"));
        QCOMPARE(e.output->relativeFrobenius, .0);
        QCOMPARE(e.activation->relativeFrobenius, .0);
        QVERIFY(std::isinf(e.output->sqnrDb));
        QVERIFY(!e.gain);
        QCOMPARE(e.ledger.weightBits, 16.0);
    }
    void identityHasGainOne()
    {
        const Evaluation e = wavy().evaluate(candidateOf("none", "int8:token", "int8:row"));
        QCOMPARE(*e.gain, 1.0);
        QCOMPARE(e.conditioning->kappa, 1.0);
        QVERIFY(e.equivalence->passed);
        QCOMPARE(e.ledger.weightBits, 8 + 16 / 32.);
    }
    void figuresAgreeWithTheirDefinitions()
    {
        const Evaluation e = wavy().evaluate(candidateOf("none", "int4:token", "int4:row"));
        const OutputBlock &o = *e.output;
        QVERIFY(std::abs(o.sqnrDb + 20 * std::log10(o.relativeFrobenius)) < 1e-12);
        QVERIFY(o.rows.median <= o.rows.p95 && o.rows.p95 <= o.rows.max);
        QCOMPARE(o.worstToken.value, o.rows.max);
        QCOMPARE(o.perConsumer.size(), std::size_t{2});
        QVERIFY(std::abs(e.terms->activationOnly + e.terms->weightOnly + e.terms->cross + e.terms->interaction -
                         o.relativeFrobenius * o.relativeFrobenius) < 1e-15);
        const std::size_t rows = e.sums->fileRows.size();
        QVERIFY(std::abs(o.mse * static_cast<double>(rows) * 32 - e.sums->error2()) < 1e-9 * e.sums->error2());
        QVERIFY(o.cosine > .9 && o.cosine < 1);
    }
    void rowsOfThePartsAreReported()
    {
        const Bench bench = wavy();
        const Evaluation e = bench.evaluate(candidateOf("none", "int8:token", "int8:row"));
        QCOMPARE(e.rows.calibration, std::int64_t{64}); // U = 8 gives 4/2/2
        QCOMPARE(e.rows.validation, std::int64_t{16});
        QCOMPARE(e.rows.heldOut, std::int64_t{32});
        QCOMPARE(e.rows.sealed, std::int64_t{32});
        QCOMPARE(e.rows.available, std::int64_t{128});
        QCOMPARE(e.splitUnit, std::string("request"));
    }
    void overlappingExplicitRowsAreInSample()
    {
        QVERIFY(granularities().evaluate(candidateOf("none", "int4:token", "none")).inSample);
        const Bench apart(openedOf(wavyMatrix(8, 4), {wavyMatrix(3, 4, 2)}), explicitRows(4, 4, 8));
        const Evaluation e = apart.evaluate(candidateOf("none", "int4:token", "none"));
        QVERIFY(!e.inSample);
        QCOMPARE(*e.rows.fit, std::int64_t{4});
        QCOMPARE(*e.rows.score, std::int64_t{4});
        QCOMPARE(e.splitUnit, std::string("explicit"));
    }
    void missingWeightsAreNamed()
    {
        const Opened opened = openedOf(wavyMatrix(8, 4), {wavyMatrix(3, 4, 2), MatrixD()});
        const auto data = loadEdgeData(opened, opened.graph.edges.front(), explicitRows(4, 4, 8), *makeBackend("reference"), {});
        QVERIFY(!data);
        QCOMPARE(toText(data.error()),
                 std::string("layers.0.mlp_in: consumer layers.0.w1 has no weights in memory; pass --weights or dump them"));
    }
    void partialEvaluatesThePresentConsumers()
    {
        EvaluateOptions options = explicitRows(4, 4, 8);
        options.partial = true;
        const Bench bench(openedOf(wavyMatrix(8, 4), {wavyMatrix(3, 4, 2), MatrixD()}), options);
        const Evaluation e = bench.evaluate(candidateOf("none", "int4:token", "none"));
        QVERIFY(e.partial);
        QCOMPARE(e.consumersMissing, std::vector<std::string>{"layers.0.w1"});
        QCOMPARE(e.output->perConsumer.size(), std::size_t{1});
    }
    void methodsThatReadXRefuseNonFiniteCalibrationRows()
    {
        MatrixD x = wavyMatrix(8, 4);
        x(1, 2) = std::nan("");
        const Bench bench(openedOf(x, {wavyMatrix(3, 4, 2)}), explicitRows(4, 4, 8));
        const Evaluation fit = bench.evaluate(candidateOf("smoothquant", "int8:token", "int8:row"));
        QCOMPARE(fit.status, EvaluationStatus::Refused);
        QVERIFY2(fit.reason.find("row 1, channel 2") != std::string::npos, fit.reason.c_str());
        QVERIFY(!fit.output);
        QCOMPARE(bench.evaluate(candidateOf("none", "int8:token", "int8:row")).status, EvaluationStatus::Ok);
    }
    void secondMemberIsFittedBehindTheFirst()
    {
        // Behind SmoothQuant at alpha .5 both maxima of a channel are sqrt(a w): a second one finds s = 1 everywhere.
        const Bench bench = wavy();
        const Evaluation e = bench.evaluate(candidateOf("smoothquant+smoothquant", "int8:token", "int8:row"));
        QVERIFY2(e.status == EvaluationStatus::Ok, e.reason.c_str());
        const auto &second = std::get<ScaleOp>(e.rewrite->input.operators.at(1).value).divisor;
        for (const double s : second)
            QVERIFY(std::abs(s - 1) < 1e-12);
        const Evaluation one = bench.evaluate(candidateOf("smoothquant", "int8:token", "int8:row"));
        QVERIFY(std::abs(e.output->relativeFrobenius / one.output->relativeFrobenius - 1) < .02);
    }
    void smoothThenRotateEqualsTheRowThatBuildsBoth()
    {
        if (!findMethod("smooth_hadamard"))
            QSKIP("smooth_hadamard is not in this build");
        const Bench bench = wavy();
        const Evaluation chain =
            bench.evaluate(candidateOf("smoothquant+hadamard", "int4:token", "int4:row", {"signs=none", "stat=rms"}));
        const Evaluation row = bench.evaluate(candidateOf("smooth_hadamard", "int4:token", "int4:row", {"signs=none"}));
        QVERIFY2(chain.status == EvaluationStatus::Ok && row.status == EvaluationStatus::Ok, (chain.reason + row.reason).c_str());
        QVERIFY(std::abs(chain.output->relativeFrobenius / row.output->relativeFrobenius - 1) < 1e-9);
    }
    void bestSeedIsChosenOnValidationRowsAndReported()
    {
        const Evaluation e = wavy().evaluate(candidateOf("hadamard", "int4:token", "int4:row", {"seeds=4"}));
        QVERIFY2(e.status == EvaluationStatus::Ok, e.reason.c_str());
        QCOMPARE(e.searchLog.size(), std::size_t{4});
        std::size_t best = 0;
        for (std::size_t i = 1; i < 4; ++i)
            best = e.searchLog[i].loss < e.searchLog[best].loss ? i : best;
        QVERIFY(e.searchLog[best].chosen);
        QCOMPARE(std::get<std::int64_t>(e.chain.front().fitted.at("seed")), static_cast<std::int64_t>(best));
        const Evaluation alone = wavy().evaluate([&] {
            Candidate candidate = candidateOf("hadamard", "int4:token", "int4:row");
            candidate.seed = best;
            return candidate;
        }());
        QCOMPARE(alone.output->relativeFrobenius, e.output->relativeFrobenius);
    }
    void unavailableCandidatesAreRefusedAsNotBuilt()
    {
        Candidate candidate = candidateOf("none", "int8:token", "int8:row");
        candidate.unavailable = "not_built";
        const Evaluation e = wavy().evaluate(candidate);
        QCOMPARE(e.status, EvaluationStatus::Refused);
        QCOMPARE(e.reason, std::string("not_built"));
    }
    void factorsOfOtherSpecsNeedRefit()
    {
        const Bench bench = wavy();
        Rewrite rewrite;
        rewrite.specs =
            SpecPair{*parseQuantSpec("int4:token", Role::Activation), *parseQuantSpec("int4:row", Role::Weight), std::nullopt};
        const Candidate candidate = candidateOf("none", "int8:token", "int8:row");
        QVERIFY(!evaluateRewrite(bench.opened, *bench.data, candidate, rewrite, bench.options, {}));
        EvaluateOptions refit = bench.options;
        refit.refit = true;
        QVERIFY(evaluateRewrite(bench.opened, *bench.data, candidate, rewrite, refit, {}).has_value());
    }
    void reusedFactorsGiveTheSameError()
    {
        const Bench bench = wavy();
        const Candidate candidate = candidateOf("smoothquant", "int8:token", "int8:row");
        const Evaluation fitted = bench.evaluate(candidate);
        const auto again = evaluateRewrite(bench.opened, *bench.data, candidate, *fitted.rewrite, bench.options, {});
        QCOMPARE(again->output->relativeFrobenius, fitted.output->relativeFrobenius);
    }
    void wrongRewriteFailsTheGate()
    {
        const Bench bench = wavy();
        Rewrite singular; // kappa far above 1e4
        BlockDenseOp op{.block = 2,
                        .blocks = {matrixOf({{1, 1}, {1, 1 + 1e-6}})},
                        .inverses = {matrixOf({{1, 0}, {0, 1}})},
                        .assignment = std::vector<std::int32_t>(16, 0)};
        singular.input.operators.push_back({op});
        const auto e = evaluateRewrite(bench.opened, *bench.data, candidateOf("none", "int8:token", "int8:row"), singular,
                                       bench.options, {});
        QVERIFY(e.has_value());
        QVERIFY(e->status != EvaluationStatus::Ok && !e->output);
        op.blocks = {matrixOf({{1, 1}, {0, 1}})}; // the inverse of another matrix
        Rewrite wrong;
        wrong.input.operators.push_back({op});
        const auto failed =
            evaluateRewrite(bench.opened, *bench.data, candidateOf("none", "int8:token", "int8:row"), wrong, bench.options, {});
        QCOMPARE(failed->status, EvaluationStatus::Failed);
        QCOMPARE(failed->rule, std::string("equivalence_failed"));
        QVERIFY(!failed->output);
    }
    void backendsAgree()
    {
        const Bench cpu(openedOf(wavyMatrix(128, 32), {wavyMatrix(12, 32, 2)}, requestsOf(8, 16)), {}, "cpu");
        const Bench reference(openedOf(wavyMatrix(128, 32), {wavyMatrix(12, 32, 2)}, requestsOf(8, 16)), {});
        for (const char *method : {"none", "smoothquant", "hadamard", "llm_int8"}) {
            const double a = cpu.evaluate(candidateOf(method, "int8:token", "int8:row")).output->relativeFrobenius;
            const double b = reference.evaluate(candidateOf(method, "int8:token", "int8:row")).output->relativeFrobenius;
            QVERIFY2(std::abs(a / b - 1) < 1e-5, method);
        }
    }
};

QTEST_GUILESS_MAIN(TestEvaluate)
#include "tst_evaluate.moc"
