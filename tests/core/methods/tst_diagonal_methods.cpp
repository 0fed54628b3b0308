// Diagonal, clipping and weight-only methods on the hand-checked traces of diagonal.md 3, 6, 7, 8 and rotation.md 7.8, 7.11.
#include <QtTest>

#include <cmath>

#include "core/methods/edge_product.h"
#include "core/methods/search_loss.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

double lossOf(Fit &fit, const Rewrite &rewrite)
{
    auto loss = SearchLoss::create(fit.input, SearchPart::Fit);
    return *(*loss)(rewrite);
}

const SearchEntry *entry(const Rewrite &rewrite, double parameter)
{
    for (const SearchEntry &each : rewrite.log)
        if (std::abs(each.parameter - parameter) < 1e-9)
            return &each;
    return nullptr;
}

double chosenParameter(const Rewrite &rewrite)
{
    for (const SearchEntry &each : rewrite.log)
        if (each.chosen)
            return each.parameter;
    return std::nan("");
}

const MatrixD kAwqX = matrixOf({{4, .5, -.25, 1}, {-8, .25, .5, -.5}, {4, -.5, .25, .25}});
const MatrixD kAwqW = matrixOf({{.30, 1, -.70, .45}, {-.20, .55, .90, -1}});
const MatrixD kOsX = matrixOf({{-.43, 10.1, -.97}, {.51, 14.2, 1.61}, {1.03, 12.3, -1.53}, {-.89, 5.8, .47}});
const MatrixD kOsW = matrixOf({{1, .27, -.52}, {-.46, .13, .93}});
const MatrixD kClipX = matrixOf({{1, -2, .5}, {.5, 1.5, -1}, {-.75, 1, 2.5}, {8, -1, -10}});
const MatrixD kClipW = matrixOf({{1, .5, -.25}, {.5, -1, .25}});

} // namespace

class TestDiagonalMethods : public QObject {
    Q_OBJECT
private slots:
    void awqFindsTheRatioOfTheTrace()
    {
        auto fit = fitOf(kAwqX, {kAwqW}, "none", "int3:group4:dialect=raw");
        auto rewrite = fitMethod(*fit, "awq", {"clip=off", "duo=off"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        QVERIFY(std::abs(chosenParameter(*rewrite) - .7) < 1e-12);
        const auto &s = std::get<ScaleOp>(rewrite->input.operators.front().value).divisor;
        const double expected[] = {2.639016, .442991, .378929, .560641};
        for (std::size_t k = 0; k < 4; ++k)
            QVERIFY(std::abs(s[k] - expected[k]) < 1e-6);
        // The page prints the mean of squares over 3 tokens x 2 outputs; the log holds ||E||.
        QVERIFY(std::abs(std::pow(entry(*rewrite, .2)->loss, 2) / 6 - .019449) < 1e-6);
        QVERIFY(std::abs(std::pow(entry(*rewrite, .7)->loss, 2) / 6 - .003397) < 1e-6);
    }

    void awqDuoHasAnIdentityCandidateAndFindsTheTrace()
    {
        auto fit = fitOf(kAwqX, {kAwqW}, "none", "int3:group4:dialect=raw");
        auto rewrite = fitMethod(*fit, "awq", {"clip=off", "duo=on"});
        QVERIFY(rewrite.has_value());
        QVERIFY(std::abs(chosenParameter(*rewrite) - .4) < 1e-12);
        QCOMPARE(rewrite->log.front().label, std::string("identity"));
        QVERIFY(std::abs(std::pow(entry(*rewrite, 0)->loss, 2) / 6 - .008379) < 1e-6);
    }

    void awqLeavesDeadChannelsAlone()
    {
        auto fit = fitOf(matrixOf({{0, 1, 100}, {0, -1, 100}}), {matrixOf({{1, 2, 3}, {3, 2, 1}})}, "none", "int4:row");
        auto rewrite = fitMethod(*fit, "awq", {"clip=off", "ratio=0.5"});
        QVERIFY(rewrite.has_value());
        if (!rewrite->input.operators.empty())
            QCOMPARE(std::get<ScaleOp>(rewrite->input.operators.front().value).divisor[0], 1.0);
    }

    void osPlusFindsTheThresholdOfTheTrace()
    {
        auto fit = fitOf(kOsX, {kOsW}, "int4:tensor:static", "int4:row");
        auto rewrite = fitMethod(*fit, "os_plus", {"shift=on", "t_min=1"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        const double shift[] = {.07, 10, .04};
        for (std::size_t k = 0; k < 3; ++k)
            QVERIFY(std::abs(rewrite->input.shift[k] - shift[k]) < 1e-12);
        QVERIFY(std::abs(chosenParameter(*rewrite) - 2.888) < 1e-9);
        QVERIFY(std::abs(std::pow(lossOf(*fit, *rewrite), 2) / 4 - .005766) < 1e-6);
        QVERIFY(std::abs(std::pow(rewrite->log.front().loss, 2) / 4 - 1.654680) < 1e-5);
    }

    void symmetricTokenClipFollowsTheTeachingTrace()
    {
        auto fit = fitOf(kClipX, {kClipW}, "int4:tensor:static", "none");
        auto rewrite = fitMethod(*fit, "token_clip", {"variant=teaching"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        QVERIFY(std::abs(rewrite->clips.front().hi.front() - 8.1375) < 1e-9);
        QVERIFY(std::abs(std::pow(lossOf(*fit, *rewrite), 2) / 8 - .174688) < 1e-6);
    }

    void tokenClipSnapsOnlyInTheCodeVariant()
    {
        for (const auto &[variant, lo, hi] : {std::tuple{"paper", -7.6, 6.35}, std::tuple{"code", -2.0, 2.5}}) {
            auto fit = fitOf(kClipX, {kClipW}, "int4:tensor:asym:static", "none");
            auto rewrite = fitMethod(*fit, "token_clip", {std::string("variant=") + variant, "p_count=2", "p_step=0.1"});
            QVERIFY(rewrite.has_value());
            const SearchEntry *at = entry(*rewrite, .9);
            QVERIFY(at != nullptr);
            Rewrite direct;
            direct.clips.push_back({.target = Target::Activation, .kind = Clip::Kind::AbsoluteRange, .lo = {lo}, .hi = {hi}});
            QVERIFY(std::abs(at->loss - lossOf(*fit, direct)) < 1e-9);
        }
    }

    void tokenClipRefusesOtherSpecs()
    {
        auto fit = fitOf(kClipX, {kClipW}, "int4:token", "none");
        QVERIFY(!fitMethod(*fit, "token_clip").has_value());
    }

    void gammaMigrationTakesTheGainWithItsSign()
    {
        auto fit = fitOf(matrixOf({{1, 0, 8, -1}, {-.5, 1.25, 0, -2}}), {matrixOf({{1, -2, .25, .5}})}, "none", "none");
        fit->input.norm = std::make_shared<const NormParameters>(NormParameters{"layernorm", 0, 1e-12, {1, -.5, 16, 2}, {0, .5, -8, 1}});
        auto rewrite = fitMethod(*fit, "gamma_migration");
        QVERIFY(rewrite.has_value());
        QCOMPARE(std::get<ScaleOp>(rewrite->input.operators.front().value).divisor, (std::vector<double>{1, -.5, 16, 2}));
        fit->input.norm = std::make_shared<const NormParameters>(NormParameters{"layernorm", 0, 1e-12, {1, 0, 16, 2}, {}});
        QVERIFY(!fitMethod(*fit, "gamma_migration").has_value());
    }

    void magrProjectsAsTheTraceAndSaysSo()
    {
        // With X = I the gradient step gives back w0, so one step is the proximal map of t = penalty max|W|.
        auto fit = fitOf(matrixOf({{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}), {matrixOf({{3, -1, .5, 2}})}, "none", "int4:row");
        auto rewrite = fitMethod(*fit, "magr", {"penalty=0.5", "steps=1"});
        QVERIFY(rewrite.has_value());
        QVERIFY(rewrite->changesFunction);
        const double expected[] = {1.75, -1, .5, 1.75};
        for (std::size_t k = 0; k < 4; ++k)
            QVERIFY(std::abs((*rewrite->replaced.front())(0, k) - expected[k]) < 1e-3);
    }

    void svdquantBranchFollowsTheTrace()
    {
        auto fit = fitOf(matrixOf({{1, 0}, {0, 1}}), {matrixOf({{9, 3}, {3, 1.5}})}, "none", "int4:row");
        auto rewrite = fitMethod(*fit, "svdquant", {"rank=1", "iterations=0", "smooth=none", "branch_precision=stored"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        const LowRank &low = *rewrite->lowRank;
        const MatrixD expected = matrixOf({{8.95095, 3.13982}, {3.13982, 1.10139}});
        for (std::size_t n = 0; n < 2; ++n)
            for (std::size_t k = 0; k < 2; ++k)
                QVERIFY(std::abs(low.left.front()(n, 0) * low.right.front()(0, k) - expected(n, k)) < 1e-5);
        QVERIFY(std::abs(lossOf(*fit, *rewrite) - .027486) < 1e-5);
        QVERIFY(std::abs(lossOf(*fit, Rewrite{}) - .479157) < 1e-5);
    }
};

QTEST_GUILESS_MAIN(TestDiagonalMethods)
#include "tst_diagonal_methods.moc"
