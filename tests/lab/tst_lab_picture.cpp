// Failure lab, wrong picture of the data: what a mean, a shared step or a file without a dtype hides, and how the program says
// so.
#include <QtTest>

#include <QTemporaryDir>

#include "core/io/dump.h"
#include "core/io/number_decode.h"
#include "core/evaluate/compare.h"
#include "core/evaluate/edge_data.h"
#include "core/evaluate/jackknife.h"
#include "core/methods/edge_product.h"
#include "core/methods/search_loss.h"
#include "tests/support/candidates.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/hdf5_maker.h"
#include "tests/support/weighted_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

/// Evaluates on rows [0, fit) and [fit, all).
Evaluation evaluated(const Opened &opened, const Candidate &candidate, std::int64_t fit, std::int64_t all)
{
    EvaluateOptions options;
    options.rows.fitRows = {{0, fit}};
    options.rows.scoreRows = {{fit, all}};
    auto data = loadEdgeData(opened, opened.graph.edges.front(), options, *makeBackend("reference"), {});
    if (!data)
        throw std::runtime_error(toText(data.error()));
    auto evaluation = evaluateCandidate(opened, **data, candidate, options, {}, {});
    if (!evaluation)
        throw std::runtime_error(toText(evaluation.error()));
    return *evaluation;
}

Evaluation scored(const std::string &name, const std::vector<double> &error, const std::vector<double> &reference)
{
    auto sums = std::make_shared<ErrorSums>();
    sums->sums.rowError = error;
    sums->sums.rowReference = reference;
    for (std::size_t m = 0; m < error.size(); ++m) {
        sums->fileRows.push_back(static_cast<std::int64_t>(m));
        sums->rowRequests.push_back(0);
        sums->rowUnits.push_back(0);
    }
    Evaluation e;
    e.candidate = name;
    e.output = OutputBlock{};
    e.output->relativeFrobenius = sums->relativeFrobenius();
    e.output->rows = rowFigures(*sums);
    e.output->tokenDominated = true;
    e.sums = std::move(sums);
    return e;
}

double halfOf(std::uint16_t bits, StoredType type)
{
    double value = 0;
    widen(std::as_bytes(std::span(&bits, 1)), type, ByteOrder::Little, std::span(&value, 1));
    return value;
}

} // namespace

class TestLabPicture : public QObject {
    Q_OBJECT
private slots:
    void sharedScaleErasesOrdinaryValues()
    {
        MatrixD x(4, 64);
        for (std::size_t m = 0; m < 4; ++m)
            for (std::size_t k = 0; k < 64; ++k)
                x(m, k) = k == 0 ? 64.0 : 1.0 + 3.5 * static_cast<double>(k) / 64.0; // all below half a step of 9.14
        const Opened opened = openedOf(x, {wavyMatrix(3, 64)});
        const Evaluation four = evaluated(opened, candidateOf("none", "int4:token", "none"), 2, 4);
        QCOMPARE(four.activation->zeroedFraction, 63.0 / 64.0);
        QVERIFY(four.activation->zeroedEnergy < .2); // most values, little energy: the picture and the number disagree
        const Evaluation eight = evaluated(opened, candidateOf("none", "int8:token", "none"), 2, 4);
        QCOMPARE(eight.activation->zeroedFraction, 0.0);
    }

    void localMseChoosesAnotherClip()
    {
        // diagonal.md 3.3: over the clips of the search, X alone prefers none (10), the output prefers 8.1375.
        const MatrixD x = matrixOf({{1, -2, .5}, {.5, 1.5, -1}, {-.75, 1, 2.5}, {8, -1, -10}});
        auto fit = fitOf(x, {matrixOf({{1, .5, -.25}, {.5, -1, .25}})}, "int4:tensor:static", "none");
        const auto rewrite = fitMethod(*fit, "token_clip", {"variant=teaching"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        const double chosen = rewrite->clips.front().hi.front();
        QVERIFY(std::abs(chosen - 8.1375) < 1e-9);
        const auto localLoss = [&](double clip) {
            double sum = 0;
            for (const double v : x.values()) {
                const double step = clip / 7.0, limited = std::clamp(v, -clip, clip);
                const double back = std::clamp(std::nearbyint(limited / step), -7.0, 7.0) * step;
                sum += (back - v) * (back - v);
            }
            return sum;
        };
        QVERIFY(localLoss(10.0) < localLoss(chosen));
        auto outputLoss = SearchLoss::create(fit->input, SearchPart::Fit);
        Rewrite full;
        full.clips.push_back({.target = Target::Activation, .kind = Clip::Kind::AbsoluteRange, .lo = {-10.0}, .hi = {10.0}});
        QVERIFY(*(*outputLoss)(*rewrite) < *(*outputLoss)(full));
    }

    void halfReadsBfloatBits()
    {
        QVERIFY(std::abs(halfOf(0x4049, StoredType::Bf16) - 3.14) < 5e-3);
        QVERIFY(std::abs(halfOf(0x4049, StoredType::F16) - 2.14) < 5e-3); // as plausible as the right one
        QTemporaryDir folder;
        const std::string file = makeHdf5(folder.filePath("raw.h5").toStdString(), [](hid_t id) {
            H5Dclose(makeDataset(id, "/edges/layers.3.attn_in", H5T_STD_U16LE, {kRows, kChannels}));
        });
        const auto dump = openDump(file, {});
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        QString said;
        for (const RefusedObject &refused : (*dump)->info().refused)
            said += QString::fromStdString(refused.path + ": " + refused.reason);
        QVERIFY((*dump)->info().findEdge(EdgeId{"layers.3.attn_in"}) == nullptr);
        QVERIFY(said.contains("layers.3.attn_in"));
        QVERIFY2(said.contains("bfloat16 or float16?"), qPrintable(said));
    }

    void pooledErrorHidesTypicalToken()
    {
        // Every other row owns the norm: `smooth` is far better on those and worse on the others.
        std::vector<double> reference(16, 1.0), none(16, .01), smooth(16, .02);
        for (std::size_t m = 0; m < 16; m += 2) {
            reference[m] = 400;
            none[m] = 40;
            smooth[m] = 4;
        }
        std::vector<Evaluation> list = {scored("none", none, reference), scored("smooth", smooth, reference)};
        list[1].output->rows.rms = list[0].output->rows.rms * 1.3;
        QCOMPARE(rankEvaluations(list, RankBy::Pooled).at(1).tie, 1);
        const auto ranking = rankEvaluations(list, RankBy::Auto);
        QCOMPARE(ranking.at(0).tie, ranking.at(1).tie);
        QVERIFY(ranking.at(1).reason.find("by rows.rms none is better") != std::string::npos);
        list[1].output->rows.rms = list[0].output->rows.rms * .5; // the typical row agrees: a winner
        QCOMPARE(rankEvaluations(list, RankBy::Auto).at(1).tie, 1);
    }

    void staticSetMissesColumns()
    {
        MatrixD x = wavyMatrix(32, 16);
        for (std::size_t m = 0; m < 32; ++m)
            for (std::size_t k = 0; k < 16; ++k)
                x(m, k) = (m < 16 ? k == 3 : k == 3 || k == 7) ? 20.0 : std::clamp(x(m, k), -1.0, 1.0);
        const Opened opened = openedOf(x, {wavyMatrix(5, 16, 2)});
        const auto missed = evaluated(opened, candidateOf("llm_int8", "int8:token", "int8:row", {"select=static"}), 16, 32);
        QVERIFY2(missed.status == EvaluationStatus::Ok, missed.reason.c_str());
        const auto told = [](const Evaluation &e) {
            return std::ranges::any_of(
                e.notes, [](const std::string &note) { return note.find("were not seen in calibration") != std::string::npos; });
        };
        QVERIFY(told(missed));
        for (std::size_t m = 16; m < 32; ++m)
            x(m, 7) = 0.5;
        const auto seen = evaluated(openedOf(x, {wavyMatrix(5, 16, 2)}),
                                    candidateOf("llm_int8", "int8:token", "int8:row", {"select=static"}), 16, 32);
        QVERIFY(!told(seen));
        QVERIFY(missed.output->relativeFrobenius > seen.output->relativeFrobenius);
    }

    void staticScaleWithoutFirstToken()
    {
        // Position 0 is thirty times louder and falls on the scored side only: its range was never seen.
        MatrixD x = wavyMatrix(32, 16);
        for (std::size_t k = 0; k < 16; ++k)
            x(16, k) *= 300.0;
        const Candidate fixed = candidateOf("none", "int8:tensor:static", "none");
        const Evaluation blind = evaluated(openedOf(x, {wavyMatrix(5, 16, 2)}), fixed, 16, 32);
        QVERIFY(blind.activation->saturatedFraction > 0);
        QVERIFY(blind.output->relativeFrobenius > .5);
        const Evaluation dynamic =
            evaluated(openedOf(x, {wavyMatrix(5, 16, 2)}), candidateOf("none", "int8:token", "none"), 16, 32);
        QVERIFY(dynamic.output->relativeFrobenius < .05);
        TokenTable tokens; // one request cut into blocks: block 0 is calibration, and the split says so
        tokens.hasRequest = tokens.hasPosition = tokens.hasMask = true;
        for (std::int32_t p = 0; p < 192; ++p) {
            tokens.request.push_back(0);
            tokens.position.push_back(p);
            tokens.id.push_back(p);
            tokens.phase.push_back(0);
            tokens.mask.push_back(1);
        }
        const auto split = makeSplit(tokens, {}, "f.h5");
        QVERIFY(split.has_value() && !split->notes.empty());
        QVERIFY(split->notes.front().starts_with("rows at position 0 fall into the "));
    }
};

QTEST_GUILESS_MAIN(TestLabPicture)
#include "tst_lab_picture.moc"
