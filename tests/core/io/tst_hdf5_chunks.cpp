// Chunks of HDF5 datasets: borders, filters and fill values are right, damaged chunks are errors and never old memory.
#include <QtTest>

#include <QTemporaryDir>

#include <functional>

#include "core/io/dump.h"
#include "tests/support/hdf5_maker.h"

using namespace planish;

class TestHdf5Chunks : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string makeFile(const std::string &name, const std::function<void(hid_t)> &add) const
    {
        return makeHdf5(m_folder.path().toStdString() + "/" + name, add);
    }

private slots:
    void badChunksAreErrorsAndNeverOldMemory_data()
    {
        QTest::addColumn<int>("which");
        QTest::addColumn<QString>("mentions");
        QTest::newRow("short deflate stream") << 0 << "holds only";
        QTest::newRow("long deflate stream") << 1 << "expands to more";
        QTest::newRow("damaged stream") << 2 << "damaged";
        QTest::newRow("wrong checksum") << 3 << "fletcher32";
        QTest::newRow("short unfiltered chunk") << 4 << "of 512 bytes";
    }
    void badChunksAreErrorsAndNeverOldMemory()
    {
        QFETCH(int, which);
        QFETCH(QString, mentions);
        const std::string file = makeFile("chunk" + std::to_string(which) + ".h5", [which](hid_t id) { addBadChunk(id, which); });
        const auto dump = openDump(file, {});
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        const DumpEdge *bad = (*dump)->info().findEdge(EdgeId{"bad"});
        QVERIFY(bad != nullptr);
        const std::array<std::int64_t, 1> rows{0};
        const auto read = (*dump)->readRows(*bad, rows);
        QVERIFY(!read);
        const QString text = QString::fromStdString(toText(read.error()));
        QVERIFY2(text.contains("/edges/bad") && text.contains("chunk") && text.contains(mentions), qPrintable(text));
        QVERIFY(goodEdgeReads(**dump));
    }

    void unwrittenChunksReadAsTheFillValue()
    {
        const std::string file = makeFile("fill.h5", [](hid_t id) {
            const hid_t creation = chunked({4, 5});
            const float fill = 2.5F;
            H5Pset_fill_value(creation, H5T_NATIVE_FLOAT, &fill);
            H5Dclose(makeDataset(id, "/edges/filled", H5T_IEEE_F32LE, {7, 12}, creation));
            H5Pclose(creation);
        });
        const auto dump = openDump(file, {});
        QVERIFY(dump);
        const std::array<std::int64_t, 2> rows{6, 0};
        QCOMPARE((*dump)->readRows(*(*dump)->info().findEdge(EdgeId{"filled"}), rows).value()(0, 11), 2.5);
    }

    void bordersOfChunksInBothAxesAreRight()
    {
        constexpr hsize_t rows = 23, columns = 29;
        std::vector<float> values(rows * columns);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i);
        const std::string file = makeFile("border.h5", [&](hid_t id) {
            const hid_t creation = chunked({5, 7});
            H5Pset_shuffle(creation);
            H5Pset_deflate(creation, 6);
            H5Pset_fletcher32(creation);
            const hid_t dataset = makeDataset(id, "/edges/border", H5T_IEEE_F32BE, {rows, columns}, creation);
            H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
            H5Dclose(dataset);
            H5Pclose(creation);
        });
        const auto dump = openDump(file, {});
        QVERIFY(dump);
        const DumpEdge *edge = (*dump)->info().findEdge(EdgeId{"border"});
        const std::array<std::int64_t, 4> wanted{22, 4, 5, 14};
        const auto read = (*dump)->readRows(*edge, wanted);
        QVERIFY2(read.has_value(), read ? "" : toText(read.error()).c_str());
        for (std::size_t i = 0; i < wanted.size(); ++i)
            for (std::size_t c = 0; c < columns; ++c)
                QCOMPARE((*read)(i, c),
                         static_cast<double>(wanted[i] * static_cast<std::int64_t>(columns) + static_cast<std::int64_t>(c)));
    }

private:
    /// One chunk of 8 x 16 floats (512 bytes) whose stored bytes are wrong in one way.
    static void addBadChunk(hid_t id, int which)
    {
        const hid_t creation = chunked({kRows, kChannels});
        if (which < 3)
            H5Pset_deflate(creation, 6);
        if (which == 3)
            H5Pset_fletcher32(creation);
        const hid_t dataset = makeDataset(id, "/edges/bad", H5T_IEEE_F32LE, {kRows, kChannels}, creation);
        std::vector<unsigned char> bytes;
        if (which == 0)
            bytes = storedBlock(100);
        else if (which == 1)
            bytes = storedBlock(4096);
        else if (which == 2)
            bytes = {0x78, 0x9c, 0xff, 0xff, 0xff, 0xff, 0x00, 0x01};
        else {
            for (unsigned i = 0; i < (which == 3 ? 516U : 300U); ++i)
                bytes.push_back(static_cast<unsigned char>(i * i + 1));
        }
        const std::array<hsize_t, 2> origin{0, 0};
        H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, origin.data(), bytes.size(), bytes.data());
        H5Dclose(dataset);
        H5Pclose(creation);
    }

    /// A zlib stream of one stored block of `count` zeros.
    static std::vector<unsigned char> storedBlock(unsigned count)
    {
        std::vector<unsigned char> bytes{0x78, 0x01, 0x01};
        for (const unsigned length : {count, ~count & 0xFFFFU}) {
            bytes.push_back(static_cast<unsigned char>(length & 0xFF));
            bytes.push_back(static_cast<unsigned char>(length >> 8));
        }
        bytes.insert(bytes.end(), count, 0);
        // Adler-32 of zeros: a = 1, b = count mod 65521.
        for (const unsigned part : {count >> 8, count & 0xFFU, 0U, 1U})
            bytes.push_back(static_cast<unsigned char>(part));
        return bytes;
    }
};

QTEST_GUILESS_MAIN(TestHdf5Chunks)
#include "tst_hdf5_chunks.moc"
