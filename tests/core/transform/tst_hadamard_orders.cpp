#include <QtTest>

#include <fstream>
#include <sstream>

#include <QTemporaryDir>

#include "core/io/file_key.h"
#include "core/transform/hadamard_orders.h"
#include "core/transform/hadamard_tables.h"

using namespace planish;

namespace {

std::string hashOf(const SignTable &table)
{
    return sha256Hex(std::as_bytes(table.values()));
}

const HadamardOp &hadamardIn(const Expected<Operator> &op)
{
    return std::get<HadamardOp>(op->value);
}

std::string rowText(const SignTable &table, std::size_t row)
{
    std::string text;
    for (const std::int8_t entry : table.row(row))
        text += entry > 0 ? '+' : '-';
    return text;
}

} // namespace

class TestHadamardOrders : public QObject {
    Q_OBJECT

private slots:
    void selfTestPasses() { QVERIFY(selfTestHadamard().has_value()); }

    void everyTableEqualsTheGoldenBytes()
    {
        std::ifstream file(PLANISH_GOLDEN_DIR "/hadamard_bases.txt");
        int compared = 0;
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with("#"))
                continue;
            std::istringstream words(line);
            std::string family, kind, hash;
            std::size_t order = 0;
            words >> family >> order >> kind >> hash;
            if (family == "planish") {
                const auto base = buildBase(order);
                QVERIFY2(base.has_value(), line.c_str());
                QCOMPARE(QString::fromStdString(base->construction), QString::fromStdString(kind));
                QCOMPARE(QString::fromStdString(hashOf(base->table)), QString::fromStdString(hash));
            } else {
                QCOMPARE(QString::fromStdString(hashOf(*quarotTable(order))), QString::fromStdString(hash));
            }
            ++compared;
        }
        QCOMPARE(compared, 29);
    }

    void rowsEqualTheCheckMatricesOfTheReference() // rotation.md 2.4
    {
        const SignTable twelve = buildBase(12)->table;
        const std::vector<std::string> rows = {"++++++++++++", "-+-+---+++-+", "-++-+---+++-", "--++-+---+++",
                                               "-+-++-+---++", "-++-++-+---+", "-+++-++-+---", "--+++-++-+--",
                                               "---+++-++-+-", "----+++-++-+", "-+---+++-++-", "--+---+++-++"};
        for (std::size_t i = 0; i < rows.size(); ++i)
            QCOMPARE(rowText(twelve, i), rows[i]);
        QCOMPARE(rowText(buildBase(20)->table, 1), std::string("-+-++----+-+-++++--+"));
        const SignTable twentyEight = buildBase(28)->table;
        QCOMPARE(rowText(twentyEight, 0), "+-" + std::string(26, '+'));
        QCOMPARE(rowText(twentyEight, 2), std::string("+++-++--++++--------++++--++"));
    }

    void everyBuildableOrderIsAnExactHadamard() // H H^T = m I in integers, rotation.md 12.1
    {
        int built = 0;
        for (std::size_t order = 1; order <= 1024; ++order) {
            const auto base = buildBase(order);
            if (!base)
                continue;
            ++built;
            QVERIFY2(order == 1 || isHadamard(base->table), std::to_string(order).c_str());
        }
        QVERIFY(built > 150);
        for (const std::size_t order : {188, 236, 244, 260, 268, 292, 30, 7}) // rotation.md 2.4: no rule here
            QVERIFY(!buildBase(order));
        for (const std::size_t order : {184, 232}) // 2*92, 2*116
            QCOMPARE(buildBase(order)->construction, std::string("product"));
    }

    void aDamagedTableFailsTheSelfTest()
    {
        SignTable table = buildBase(92)->table;
        table(5, 17) = static_cast<std::int8_t>(-table(5, 17));
        QVERIFY(!isHadamard(table));
        table = buildBase(12)->table;
        table(0, 0) = 0;
        QVERIFY(!isHadamard(table));
    }

    void widthsOfRealModelsGetTheDocumentedOrder_data() // rotation.md 2.3
    {
        QTest::addColumn<int>("channels");
        QTest::addColumn<int>("order");
        QTest::addColumn<QString>("construction");
        const auto row = [](int channels, int order, const char *construction) {
            QTest::newRow(std::to_string(channels).c_str()) << channels << order << QString(construction);
        };
        row(384, 12, "paley1");
        row(576, 36, "paley2");
        row(896, 28, "paley2");
        row(1536, 12, "paley1");
        row(2304, 36, "paley2");
        row(2560, 20, "paley1");
        row(3072, 12, "paley1");
        row(3584, 28, "paley2");
        row(4096, 1, "sylvester");
        row(4864, 76, "paley2");
        row(5120, 20, "paley1");
        row(5632, 44, "paley1");
        row(6144, 12, "paley1");
        row(7168, 28, "paley2");
        row(8960, 140, "paley1");
        row(9728, 76, "paley2");
        row(10944, 684, "paley1");
        row(11008, 172, "williamson");
        row(12288, 12, "paley1");
        row(13824, 108, "paley1");
        row(14336, 28, "paley2");
        row(17408, 68, "paley1");
        row(18944, 148, "paley2");
        row(25600, 100, "williamson");
        row(28672, 28, "paley2");
        row(29568, 924, "paley2");
        row(53248, 52, "williamson");
    }

    void widthsOfRealModelsGetTheDocumentedOrder()
    {
        QFETCH(int, channels);
        QFETCH(int, order);
        QFETCH(QString, construction);
        const auto op = hadamardFor(static_cast<std::size_t>(channels));
        QVERIFY(op.has_value());
        QCOMPARE(hadamardIn(op).order, static_cast<std::size_t>(order));
        QCOMPARE(hadamardIn(op).sylvester, static_cast<std::size_t>(channels / order));
        QCOMPARE(hadamardIn(op).block, static_cast<std::size_t>(channels));
        QCOMPARE(QString::fromStdString(hadamardIn(op).construction), construction);
        if (order > 1)
            QVERIFY(isHadamard(hadamardIn(op).table));
    }

    void widthsWithoutOrderFallToBlocksOrAreRefused()
    {
        const auto glm = hadamardFor(13696); // needs order 428
        QCOMPARE(hadamardIn(glm).block, std::size_t{128});
        QCOMPARE(hadamardIn(glm).order, std::size_t{1});
        const auto small = hadamardFor(2050);
        QVERIFY(!small);
        QCOMPARE(small.error().code, ErrorCode::Refused);
        QVERIFY(small.error().expected.find("possible blocks are 2") != std::string::npos);
        const auto odd = hadamardFor(105);
        QVERIFY(!odd);
        QVERIFY(odd.error().expected.find("no block is possible") != std::string::npos);
    }

    void quarotTakesTheFirstDivisorOrAsserts() // rotation.md 2.3, column QuaRot
    {
        const std::vector<std::pair<std::size_t, std::size_t>> orders = {
            {384, 12},    {576, 36},  {896, 28},   {2560, 40},  {5120, 40}, {8960, 140}, {11008, 172},
            {13824, 108}, {1536, 12}, {14336, 28}, {53248, 52}, {4096, 1},  {2304, 36},  {7168, 28}};
        for (const auto &[channels, order] : orders) {
            const auto op = hadamardFor(channels, HadamardTable::Quarot);
            QVERIFY2(op.has_value(), std::to_string(channels).c_str());
            QCOMPARE(hadamardIn(op).order, order);
        }
        for (const std::size_t channels : {4864, 5632, 9728, 10944, 13696, 17408, 18944, 25600, 29568}) {
            const auto op = hadamardFor(channels, HadamardTable::Quarot);
            QVERIFY2(!op, std::to_string(channels).c_str());
            QCOMPARE(op.error().code, ErrorCode::Refused);
        }
    }

    void blocksAreBuiltOrListed()
    {
        const auto op = blockHadamardFor(576, 36);
        QCOMPARE(hadamardIn(op).order, std::size_t{36});
        QCOMPARE(hadamardIn(op).sylvester, std::size_t{1});
        QCOMPARE(hadamardIn(blockHadamardFor(576, 64)).sylvester, std::size_t{64});
        QVERIFY(!blockHadamardFor(576, 128)); // 128 as a fixed default fails on 576
        QVERIFY(!blockHadamardFor(576, 9));
        QCOMPARE(autoBlock(576), std::size_t{64});
        QCOMPARE(autoBlock(1536), std::size_t{128});
        QCOMPARE(autoBlock(75), std::size_t{1});
        QCOMPARE(possibleBlocks(48), (std::vector<std::size_t>{2, 4, 8, 12, 16, 24, 48}));
    }

    void aTableComesFromAFile()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("h12.txt").toStdString();
        const SignTable table = *quarotTable(12);
        std::ofstream file(path);
        for (std::size_t i = 0; i < 12; ++i)
            file << rowText(table, i) << "\n";
        file.close();
        const auto op = hadamardFor(96, HadamardTable::File, path);
        QVERIFY(op.has_value());
        QCOMPARE(hadamardIn(op).table, table);
        QCOMPARE(hadamardIn(op).sylvester, std::size_t{8});
        QVERIFY(!hadamardFor(100, HadamardTable::File, path));
        QVERIFY(!hadamardFor(96, HadamardTable::File, path + ".missing"));
        std::ofstream(path) << "++\n++\n";
        QVERIFY(!hadamardFor(96, HadamardTable::File, path)); // no Hadamard matrix
        std::ofstream(path) << "1, 1\n1, -1\n";
        QCOMPARE(hadamardIn(hadamardFor(96 / 3, HadamardTable::File, path)).table, sylvester(2));
    }

    void compressedTensorsNeedsItsOwnMatrix()
    {
        const auto missing = hadamardFor(2560, HadamardTable::CompressedTensors);
        QVERIFY(!missing);
        QVERIFY(missing.error().what.find("order 160") != std::string::npos); // largest divisor, rotation.md 2.3
        QVERIFY(!hadamardFor(10944, HadamardTable::CompressedTensors));
    }
};

QTEST_GUILESS_MAIN(TestHadamardOrders)
#include "tst_hadamard_orders.moc"
