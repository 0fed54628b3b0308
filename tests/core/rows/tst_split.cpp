#include <QtTest>

#include <limits>
#include <numeric>
#include <set>

#include "core/rows/split.h"

using namespace planish;

namespace {

/// `requests` requests of `length` token rows.
TokenTable tableOf(int requests, int length)
{
    TokenTable tokens;
    tokens.hasRequest = tokens.hasPosition = tokens.hasMask = true;
    for (int r = 0; r < requests; ++r)
        for (int p = 0; p < length; ++p) {
            tokens.request.push_back(r);
            tokens.position.push_back(p);
            tokens.id.push_back(100 + p);
            tokens.phase.push_back(0);
            tokens.mask.push_back(1);
        }
    return tokens;
}

DumpEdge edgeOf(const TokenTable &tokens)
{
    DumpEdge edge;
    edge.id = {"layers.0.attn_in"};
    edge.rows = tokens.size();
    edge.channels = 2;
    return edge;
}

std::vector<std::string> ids(const Split &split, const std::vector<std::int32_t> &units)
{
    std::vector<std::string> names;
    for (const std::int32_t unit : units)
        names.push_back(split.units[static_cast<std::size_t>(unit)].id);
    return names;
}

using Names = std::vector<std::string>;

/// Value of row r, channel k is 10 r + k; one row may be poisoned.
class FakeDump : public Dump {
public:
    explicit FakeDump(TokenTable tokens, std::int64_t poisonedRow = -1) : m_poisonedRow(poisonedRow)
    {
        m_info.tokens = std::move(tokens);
    }
    const DumpInfo &info() const override { return m_info; }
    Expected<MatrixD> readRows(const DumpEdge &edge, std::span<const std::int64_t> rows) const override
    {
        MatrixD x(rows.size(), edge.channels);
        for (std::size_t r = 0; r < rows.size(); ++r)
            for (std::size_t k = 0; k < edge.channels; ++k)
                x(r, k) = rows[r] == m_poisonedRow && k == 1 ? std::numeric_limits<double>::quiet_NaN()
                                                             : 10.0 * static_cast<double>(rows[r]) + static_cast<double>(k);
        return x;
    }
    Expected<void> visitBlocks(const DumpEdge &, const std::function<bool(const Block &)> &, std::stop_token) const override
    {
        return {};
    }
    Expected<void> visitRawBlocks(const DumpEdge &,
                                  const std::function<bool(std::uint64_t, std::uint64_t, std::span<const std::byte>)> &,
                                  std::stop_token) const override
    {
        return {};
    }
    Expected<MatrixD> readTensor(const TensorEntry &) const override { return MatrixD(); }

private:
    DumpInfo m_info;
    std::int64_t m_poisonedRow;
};

} // namespace

class TestSplit : public QObject {
    Q_OBJECT

private slots:
    void partsHaveTheDocumentedSizes_data()
    {
        QTest::addColumn<int>("units");
        QTest::addColumn<int>("calibration");
        QTest::addColumn<int>("heldOut");
        QTest::addColumn<int>("sealedUnits");
        QTest::addColumn<int>("validation");
        QTest::newRow("3") << 3 << 1 << 1 << 1 << 0;
        QTest::newRow("4") << 4 << 2 << 1 << 1 << 1;
        QTest::newRow("8") << 8 << 4 << 2 << 2 << 1;
        QTest::newRow("128") << 128 << 64 << 32 << 32 << 16;
    }

    void partsHaveTheDocumentedSizes()
    {
        QFETCH(int, units);
        QFETCH(int, calibration);
        QFETCH(int, heldOut);
        QFETCH(int, sealedUnits);
        QFETCH(int, validation);
        const auto split = makeSplit(tableOf(units, 4), {}, "f.h5");
        QVERIFY(split.has_value());
        QCOMPARE(split->calibration.size(), static_cast<std::size_t>(calibration));
        QCOMPARE(split->heldOut.size(), static_cast<std::size_t>(heldOut));
        QCOMPARE(split->sealed.size(), static_cast<std::size_t>(sealedUnits));
        QCOMPARE(split->validation.size(), static_cast<std::size_t>(validation));
        QCOMPARE(split->validationByRows, calibration == 1);
        std::set<std::int32_t> all(split->calibration.begin(), split->calibration.end());
        all.insert(split->heldOut.begin(), split->heldOut.end());
        all.insert(split->sealed.begin(), split->sealed.end());
        QCOMPARE(all.size(), static_cast<std::size_t>(units)); // every unit in exactly one part
    }

    void threeRequestsAtSeedZeroComeAsTwoZeroOne() // evaluation.md 1, item 3
    {
        const auto split = makeSplit(tableOf(3, 20), {}, "f.h5");
        QCOMPARE(ids(*split, split->calibration), Names{"2"});
        QCOMPARE(ids(*split, split->heldOut), Names{"0"});
        QCOMPARE(ids(*split, split->sealed), Names{"1"});
        const auto other = makeSplit(tableOf(3, 20), {.splitSeed = 5}, "f.h5");
        QCOMPARE(ids(*other, other->calibration), Names{"2"});
        QCOMPARE(ids(*other, other->heldOut), Names{"1"});
    }

    void eightRequestsFollowTheirHashes() // order from Python's hashlib: 7 4 3 2 6 0 5 1
    {
        const auto split = makeSplit(tableOf(8, 4), {}, "f.h5");
        QCOMPARE(ids(*split, split->calibration), (Names{"7", "4", "3", "2"}));
        QCOMPARE(ids(*split, split->validation), Names{"2"});
        QCOMPARE(ids(*split, split->heldOut), (Names{"6", "0"}));
        QCOMPARE(ids(*split, split->sealed), (Names{"5", "1"}));
    }

    void fewRequestsAreCutIntoBlocks()
    {
        TokenTable tokens = tableOf(1, 192); // ceil(192 / 12) = 16 rows a block, 12 blocks
        auto split = makeSplit(tokens, {}, "f.h5");
        QCOMPARE(split->unit, SplitUnit::Block);
        QCOMPARE(split->units.size(), std::size_t{12});
        QCOMPARE(split->units[11].id, std::string("0/11"));
        QCOMPARE(ids(*split, split->calibration), (Names{"0/5", "0/3", "0/7", "0/0", "0/6", "0/4"}));
        QCOMPARE(ids(*split, split->validation), (Names{"0/6", "0/4"}));
        QCOMPARE(ids(*split, split->sealed), (Names{"0/8", "0/10", "0/9"}));

        tokens = tableOf(2, 390); // ceil(780 / 12) = 65, clamped to 64: 7 blocks a request, the last of 6 rows
        split = makeSplit(tokens, {}, "f.h5");
        QCOMPARE(split->units.size(), std::size_t{14});
        QCOMPARE(split->units[7].id, std::string("1/0"));
        QCOMPARE(split->units[6].tokens.size(), std::size_t{6});

        tokens = tableOf(8, 12); // requests are not known to be requests: all of it is request 0
        tokens.hasRequest = false;
        split = makeSplit(tokens, {}, "f.h5");
        QCOMPARE(split->unit, SplitUnit::Block);
        QCOMPARE(split->units.size(), std::size_t{6}); // 96 rows, blocks of 16
        QCOMPARE(split->units[5].id, std::string("0/5"));
    }

    void twoBlocksAreNoSplit()
    {
        const auto split = makeSplit(tableOf(1, 32), {}, "f.h5");
        QVERIFY(!split);
        QCOMPARE(toText(split.error()), std::string("f.h5: its counted rows form 2 units; a split needs three units"));
        QVERIFY(makeSplit(tableOf(1, 33), {}, "f.h5").has_value());
    }

    void maskPhaseAndSkipsDecideWhatCounts()
    {
        TokenTable tokens = tableOf(3, 10);
        tokens.mask[3] = 0;
        tokens.phase[9] = 1;
        tokens.hasId = true;
        const DumpEdge edge = edgeOf(tokens);
        QCOMPARE(countedRows(tokens, edge, {}).size(), std::size_t{29});
        QCOMPARE(countedRows(tokens, edge, {.phase = Phase::Decode}), std::vector<std::int64_t>{9});
        QCOMPARE(countedRows(tokens, edge, {.phase = Phase::Prefill}).size(), std::size_t{28});
        QCOMPARE(countedRows(tokens, edge, {.skipPositions = {0}}).size(), std::size_t{26});
        QCOMPARE(countedRows(tokens, edge, {.skipIds = {100, 101}}).size(), std::size_t{23});
        const auto split = makeSplit(tokens, {.skipPositions = {0}}, "f.h5");
        for (const Unit &unit : split->units)
            for (const std::int64_t token : unit.tokens)
                QVERIFY(tokens.position[static_cast<std::size_t>(token)] != 0);
    }

    void partsOfAnEdgeWithFewerRowsUseTheUnitsOfTheDump()
    {
        const TokenTable tokens = tableOf(4, 5);
        DumpEdge edge = edgeOf(tokens);
        edge.rowToToken = {19, 0, 6, 11}; // requests 3, 0, 1, 2
        edge.rows = 4;
        const auto split = makeSplit(tokens, {}, "f.h5"); // order 3 2 | 0 | 1
        QCOMPARE(rowsOfPart(*split, tokens, edge, Part::Calibration), (std::vector<std::int64_t>{0, 3}));
        QCOMPARE(rowsOfPart(*split, tokens, edge, Part::Validation), (std::vector<std::int64_t>{3}));
        QCOMPARE(rowsOfPart(*split, tokens, edge, Part::HeldOut), (std::vector<std::int64_t>{1}));
        QCOMPARE(rowsOfPart(*split, tokens, edge, Part::Sealed), (std::vector<std::int64_t>{2}));
        QCOMPARE(rowsOfPart(*split, tokens, edge, Part::All).size(), std::size_t{4});
    }

    void budgetGivesEachRequestItsShareByLargestRemainder()
    {
        TokenTable tokens = tableOf(1, 60); // 60 rows of request 0, 30 of 1, 10 of 2
        for (std::size_t i = 0; i < 40; ++i) {
            tokens.request.push_back(i < 30 ? 1 : 2);
            tokens.position.push_back(0);
            tokens.id.push_back(0);
            tokens.phase.push_back(0);
            tokens.mask.push_back(1);
        }
        const DumpEdge edge = edgeOf(tokens);
        std::vector<std::int64_t> rows(100);
        std::iota(rows.begin(), rows.end(), 0);
        QCOMPARE(withinBudget(rows, tokens, edge, -1), rows);
        QCOMPARE(withinBudget(rows, tokens, edge, 100), rows);
        // 7 rows: quotas 4.2, 2.1, .7 -> 4, 2, 1; rows floor(i n / b)
        QCOMPARE(withinBudget(rows, tokens, edge, 7), (std::vector<std::int64_t>{0, 15, 30, 45, 60, 75, 90}));
        // 4 rows: quotas 2.4, 1.2, .4 -> 2, 1, 1 (at least one)
        QCOMPARE(withinBudget(rows, tokens, edge, 4), (std::vector<std::int64_t>{0, 30, 60, 90}));
        // 6 rows: quotas 3.6, 1.8, .6 -> floors 3, 1, 1 with one left for the remainder .8 of request 1
        QCOMPARE(withinBudget(rows, tokens, edge, 6), (std::vector<std::int64_t>{0, 20, 40, 60, 75, 90}));
        QCOMPARE(withinBudget(rows, tokens, edge, 2).size(), std::size_t{2});
        for (std::int64_t budget = 1; budget <= 100; ++budget)
            QCOMPARE(static_cast<std::int64_t>(withinBudget(rows, tokens, edge, budget).size()), budget);
    }

    void oneCalibrationUnitGivesItsLastQuarterOfRows()
    {
        const TokenTable tokens = tableOf(3, 10);
        const DumpEdge edge = edgeOf(tokens);
        const FakeDump dump(tokens);
        const auto split = makeSplit(tokens, {}, "f.h5");
        const auto calibration = loadRows<Part::Calibration>(dump, edge, *split, -1);
        QCOMPARE(calibration->size(), std::size_t{10});
        const auto validation = validationOf(*calibration, *split);
        const auto fitting = withoutValidation(*calibration, *split);
        QCOMPARE(validation->rows(), (std::vector<std::int64_t>{27, 28, 29}));
        QCOMPARE(fitting->size(), std::size_t{7});
        QCOMPARE(fitting->x()(0, 1), 201.0);
        QCOMPARE(rowsOfPart(*split, tokens, edge, Part::Validation), validation->rows());
    }

    void validationUnitsAreTheLastQuarterInHashedOrder()
    {
        const TokenTable tokens = tableOf(8, 3);
        const DumpEdge edge = edgeOf(tokens);
        const FakeDump dump(tokens);
        const auto split = makeSplit(tokens, {}, "f.h5");
        const auto calibration = loadRows<Part::Calibration>(dump, edge, *split, -1);
        QCOMPARE(validationOf(*calibration, *split)->requests(), (std::vector<std::int32_t>{2, 2, 2}));
        QCOMPARE(withoutValidation(*calibration, *split)->size(), std::size_t{9});
    }

    void nonFiniteRowsAreDroppedAndCounted()
    {
        const TokenTable tokens = tableOf(3, 10);
        const DumpEdge edge = edgeOf(tokens);
        const FakeDump dump(tokens, 22); // request 2 = calibration
        const auto split = makeSplit(tokens, {}, "f.h5");
        LoadedCounts counts;
        const auto rows = loadRows<Part::Calibration>(dump, edge, *split, -1, &counts);
        QCOMPARE(rows->size(), std::size_t{9});
        QCOMPARE(counts.nonFiniteRows, std::int64_t{1});
        QCOMPARE(counts.firstRow, std::int64_t{22});
        QCOMPARE(counts.firstChannel, std::int64_t{1});
        QCOMPARE(rows->rows()[2], std::int64_t{23});
        QCOMPARE(rows->x()(2, 0), 230.0);
        QCOMPARE(rows->available(), std::int64_t{10});
    }

    void loadedRowsKnowUnitRequestAndBudget()
    {
        const TokenTable tokens = tableOf(8, 10);
        const FakeDump dump(tokens);
        const auto split = makeSplit(tokens, {}, "f.h5");
        const auto held = loadRows<Part::HeldOut>(dump, edgeOf(tokens), *split, 4);
        QCOMPARE(held->rows(), (std::vector<std::int64_t>{0, 5, 60, 65})); // requests 0 and 6
        QCOMPARE(held->requests(), (std::vector<std::int32_t>{0, 0, 6, 6}));
        QCOMPARE(held->units(), (std::vector<std::int32_t>{0, 0, 6, 6}));
        QCOMPARE(held->available(), std::int64_t{20});
    }

    void explicitRowsReplaceTheSplit()
    {
        TokenTable tokens = tableOf(3, 10);
        const DumpEdge edge = edgeOf(tokens);
        const FakeDump dump(tokens);
        RowRequest request;
        request.budget = 2;
        request.fitRows = {{20, 26}, {0, 2}};
        request.scoreRows = {{10, 13}};
        const auto split = makeSplit(tokens, request, "f.h5");
        QCOMPARE(split->unit, SplitUnit::Explicit);
        QVERIFY(!split->inSample);
        const auto fit = loadRows<Part::Calibration>(dump, edge, *split, request.budget);
        QCOMPARE(fit->rows(), (std::vector<std::int64_t>{20, 21, 22, 23, 24, 25, 0, 1})); // the order given, no budget
        QCOMPARE(validationOf(*fit, *split)->rows(), (std::vector<std::int64_t>{0, 1}));
        QCOMPARE(loadRows<Part::HeldOut>(dump, edge, *split, -1)->rows(), (std::vector<std::int64_t>{10, 11, 12}));
        QCOMPARE(loadRows<Part::Sealed>(dump, edge, *split, -1)->size(), std::size_t{0});

        request.scoreRows = {{25, 30}};
        QVERIFY(makeSplit(tokens, request, "f.h5")->inSample);
        request.scoreRows = {{25, 31}};
        const auto beyond = loadRows<Part::HeldOut>(dump, edge, *makeSplit(tokens, request, "f.h5"), -1);
        QVERIFY(!beyond && beyond.error().code == ErrorCode::Usage);
        request.scoreRows.clear();
        QVERIFY(!makeSplit(tokens, request, "f.h5"));
        request.scoreRows = {{5, 5}};
        QVERIFY(!makeSplit(tokens, request, "f.h5"));
    }

    void aLonelyFirstPositionIsNoted()
    {
        QVERIFY(makeSplit(tableOf(3, 10), {}, "f.h5")->notes.empty());
        const auto blocks = makeSplit(tableOf(1, 192), {}, "f.h5"); // block 0/0 is calibration
        QCOMPARE(blocks->notes, Names{"rows at position 0 fall into the calibration part only"});
    }

    void aFractionOutsideZeroAndOneIsWrongUsage()
    {
        for (const double fraction : {0.0, 1.0, -0.5, std::numeric_limits<double>::quiet_NaN()}) {
            const auto split = makeSplit(tableOf(3, 10), {.calibration = fraction}, "f.h5");
            QVERIFY(!split && split.error().code == ErrorCode::Usage);
        }
    }
};

QTEST_GUILESS_MAIN(TestSplit)
#include "tst_split.moc"
