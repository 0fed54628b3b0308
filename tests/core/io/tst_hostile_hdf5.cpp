// Broken and malicious HDF5 files, made here with the C library: each bad part is refused by path, the good edge stays readable.
#include <QtTest>

#include <QTemporaryDir>

#include <fcntl.h>
#include <hdf5.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/io/dump.h"
#include "core/io/hdf5_file.h"

using namespace planish;

namespace {

constexpr hsize_t kRows = 8, kChannels = 16;

hid_t makeDataset(hid_t file, const char *path, hid_t type, const std::vector<hsize_t> &shape, hid_t creation = H5P_DEFAULT)
{
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sclose(space);
    return dataset;
}

void writeOnes(hid_t dataset, std::size_t count)
{
    const std::vector<float> ones(count, 1.0F);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data());
}

hid_t chunked(const std::vector<hsize_t> &chunk)
{
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    return creation;
}

} // namespace

class TestHostileHdf5 : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const std::string &name) const { return m_folder.path().toStdString() + "/" + name; }

    /// A file with /edges/good [8, 16] of ones and whatever `add` puts beside it.
    std::string makeFile(const std::string &name, const std::function<void(hid_t)> &add) const
    {
        const Hdf5Lock lock;
        const std::string file = path(name);
        const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(H5Gcreate2(id, "/edges", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        const hid_t good = makeDataset(id, "/edges/good", H5T_IEEE_F32LE, {kRows, kChannels});
        writeOnes(good, kRows * kChannels);
        H5Dclose(good);
        add(id);
        H5Fclose(id);
        return file;
    }

    /// Reason under which `edge` was refused; empty when it was not.
    static std::string refusalOf(const Dump &dump, const std::string &edge)
    {
        for (const RefusedObject &refused : dump.info().refused)
            if (refused.path == edge)
                return refused.reason;
        return {};
    }

    static void goodEdgeIsReadable(const Dump &dump)
    {
        const DumpEdge *good = dump.info().findEdge(EdgeId{"good"});
        QVERIFY(good != nullptr);
        const std::array<std::int64_t, 2> rows{0, 7};
        const auto read = dump.readRows(*good, rows);
        QVERIFY(read);
        QCOMPARE((*read)(1, 15), 1.0);
    }

private slots:
    void badObjectsAreRefusedByPath_data()
    {
        QTest::addColumn<int>("which");
        QTest::addColumn<QString>("mentions");
        const char *rows[][2] = {{"external link", "external link to /etc/hostname"},
                                 {"external storage", "external storage in /etc/passwd"},
                                 {"virtual dataset", "virtual dataset from other.h5"},
                                 {"dangling soft link", "does not exist"},
                                 {"soft link loop", "loop"},
                                 {"huge chunked", "exceed the budget"},
                                 {"overflow", "overflow 64 bits"},
                                 {"huge chunk", "too large"},
                                 {"empty rows", "zero rows"},
                                 {"rank 5", "rank 5"},
                                 {"null", "null dataspace"},
                                 {"compound", "compound {a}"},
                                 {"reference", "object reference"},
                                 {"bare 16-bit integers", "bfloat16 or float16"}};
        int which = 0;
        for (const auto &row : rows)
            QTest::newRow(row[0]) << which++ << QString(row[1]);
    }
    void badObjectsAreRefusedByPath()
    {
        QFETCH(int, which);
        QFETCH(QString, mentions);
        const std::string file = makeFile("bad" + std::to_string(which) + ".h5", [which](hid_t id) { addBadObject(id, which); });
        const auto dump = openDump(file, {});
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        const std::string reason = refusalOf(**dump, "/edges/bad");
        QVERIFY2(QString::fromStdString(reason).contains(mentions), reason.c_str());
        goodEdgeIsReadable(**dump);
    }

    void externalLinksNeverLeaveTheFolderEvenWhenTrusted()
    {
        std::filesystem::create_directory(path("inner"));
        makeFile("outside.h5", [](hid_t) {});
        makeFile("inner/beside.h5", [](hid_t) {});
        const std::string file = makeFile("inner/links.h5", [](hid_t id) {
            H5Lcreate_external("../outside.h5", "/edges/good", id, "/edges/up", H5P_DEFAULT, H5P_DEFAULT);
            H5Lcreate_external("beside.h5", "/edges/good", id, "/edges/near", H5P_DEFAULT, H5P_DEFAULT);
        });
        const auto trusted = openDump(file, {.trustLinks = true});
        QVERIFY(trusted);
        QVERIFY(refusalOf(**trusted, "/edges/up").find("outside the folder") != std::string::npos);
        QVERIFY((*trusted)->info().findEdge(EdgeId{"near"}) != nullptr);
        const std::array<std::int64_t, 1> rows{3};
        QCOMPARE((*trusted)->readRows(*(*trusted)->info().findEdge(EdgeId{"near"}), rows).value()(0, 0), 1.0);
        const auto plain = openDump(file, {});
        QVERIFY(plain && (*plain)->info().findEdge(EdgeId{"near"}) == nullptr);
    }

    void aSoftLinkThroughAnExternalLinkIsNotFollowed()
    {
        makeFile("target.h5", [](hid_t) {});
        const std::string file = makeFile("indirect.h5", [](hid_t id) {
            H5Lcreate_external("target.h5", "/", id, "/door", H5P_DEFAULT, H5P_DEFAULT);
            H5Lcreate_soft("/door/edges/good", id, "/edges/sneak", H5P_DEFAULT, H5P_DEFAULT);
        });
        const auto dump = openDump(file, {});
        QVERIFY(dump);
        QCOMPARE((*dump)->info().edges.size(), std::size_t{1});
        QVERIFY(!refusalOf(**dump, "/edges/sneak").empty());
    }

    void hardLinkCyclesEndAndListEachObjectOnce()
    {
        const std::string file = makeFile("cycle.h5", [](hid_t id) {
            H5Lcreate_hard(id, "/edges", id, "/edges/self", H5P_DEFAULT, H5P_DEFAULT);
            H5Lcreate_hard(id, "/", id, "/edges/up", H5P_DEFAULT, H5P_DEFAULT);
            H5Lcreate_hard(id, "/edges/good", id, "/edges/same", H5P_DEFAULT, H5P_DEFAULT);
        });
        const auto dump = openDump(file, {});
        QVERIFY(dump);
        QCOMPARE((*dump)->info().edges.size(), std::size_t{1});
        goodEdgeIsReadable(**dump);
    }

    void aLockedFileNamesTheFlagThatReadsItAnyway()
    {
        const std::string file = makeFile("locked.h5", [](hid_t) {});
        const int holder = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
        QVERIFY(holder >= 0 && ::flock(holder, LOCK_EX) == 0);
        const auto refused = openDump(file, {});
        QVERIFY(!refused);
        const std::string text = toText(refused.error());
        QVERIFY2(text.find(file) == 0 && text.find("--no-lock") != std::string::npos, text.c_str());
        const auto unlocked = openDump(file, {.noLock = true});
        QVERIFY(unlocked);
        goodEdgeIsReadable(**unlocked);
        ::close(holder);
    }

    void everyTruncationIsToldOrRefused()
    {
        const std::string whole = makeFile("whole.h5", [](hid_t) {});
        const auto size = std::filesystem::file_size(whole);
        for (const std::uintmax_t kept : {std::uintmax_t{0}, std::uintmax_t{5}, std::uintmax_t{20}, size / 2, size - 1}) {
            const std::string cut = path("cut.h5");
            std::filesystem::copy_file(whole, cut, std::filesystem::copy_options::overwrite_existing);
            std::filesystem::resize_file(cut, kept);
            const auto dump = openDump(cut, {});
            QVERIFY(!dump);
            const QString text = QString::fromStdString(toText(dump.error()));
            QVERIFY2(text.contains("cut.h5") && (text.contains("truncated") || text.contains("too short")), qPrintable(text));
        }
    }

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
        goodEdgeIsReadable(**dump);
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

    void aFileOfAnotherLayoutSaysWhatWasLookedFor()
    {
        const std::string file = path("other.h5");
        {
            const Hdf5Lock lock;
            const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
            H5Fclose(id);
        }
        const auto dump = openDump(file, {});
        QVERIFY(!dump);
        QVERIFY(toText(dump.error()).find("looked for") != std::string::npos);
    }

private:
    static void addBadObject(hid_t id, int which)
    {
        const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
        hid_t dataset = -1;
        switch (which) {
        case 0:
            H5Lcreate_external("/etc/hostname", "/x", id, "/edges/bad", H5P_DEFAULT, H5P_DEFAULT);
            break;
        case 1:
            H5Pset_external(creation, "/etc/passwd", 0, 512);
            dataset = makeDataset(id, "/edges/bad", H5T_IEEE_F32LE, {8, 16}, creation);
            break;
        case 2:
            addVirtual(id, creation);
            break;
        case 3:
            H5Lcreate_soft("/nowhere", id, "/edges/bad", H5P_DEFAULT, H5P_DEFAULT);
            break;
        case 4:
            H5Lcreate_soft("/edges/back", id, "/edges/bad", H5P_DEFAULT, H5P_DEFAULT);
            H5Lcreate_soft("/edges/bad", id, "/edges/back", H5P_DEFAULT, H5P_DEFAULT);
            break;
        default:
            addBadDataset(id, which, creation);
        }
        if (dataset >= 0)
            H5Dclose(dataset);
        H5Pclose(creation);
    }

    static void addVirtual(hid_t id, hid_t creation)
    {
        const std::array<hsize_t, 2> shape{kRows, kChannels};
        const hid_t space = H5Screate_simple(2, shape.data(), nullptr);
        H5Pset_virtual(creation, space, "other.h5", "/edges/good", space);
        H5Dclose(H5Dcreate2(id, "/edges/bad", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
        H5Sclose(space);
    }

    static void addBadDataset(hid_t id, int which, hid_t creation)
    {
        constexpr hsize_t kHuge = hsize_t{1} << 40;
        const std::array<hsize_t, 2> small{64, 64};
        const std::array<hsize_t, 2> large{hsize_t{1} << 20, 64};
        if (which <= 6)
            H5Pset_chunk(creation, 2, small.data());
        if (which == 7)
            H5Pset_chunk(creation, 2, large.data());
        const hid_t compound = H5Tcreate(H5T_COMPOUND, 4);
        H5Tinsert(compound, "a", 0, H5T_IEEE_F32LE);
        hid_t dataset = -1;
        switch (which) {
        case 5:
            dataset = makeDataset(id, "/edges/bad", H5T_IEEE_F32LE, {kHuge, 64}, creation);
            break;
        case 6:
            dataset = makeDataset(id, "/edges/bad", H5T_IEEE_F64LE, {hsize_t{1} << 33, hsize_t{1} << 31}, creation);
            break;
        case 7:
            dataset = makeDataset(id, "/edges/bad", H5T_IEEE_F32LE, {hsize_t{1} << 20, 64}, creation);
            break;
        case 8:
            dataset = makeDataset(id, "/edges/bad", H5T_IEEE_F32LE, {0, 64});
            break;
        case 9:
            dataset = makeDataset(id, "/edges/bad", H5T_IEEE_F32LE, {2, 2, 2, 2, 2});
            break;
        case 10: {
            const hid_t space = H5Screate(H5S_NULL);
            dataset = H5Dcreate2(id, "/edges/bad", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            H5Sclose(space);
            break;
        }
        case 11:
            dataset = makeDataset(id, "/edges/bad", compound, {8, 4});
            break;
        case 12:
            dataset = makeDataset(id, "/edges/bad", H5T_STD_REF_OBJ, {8, 4});
            break;
        default:
            dataset = makeDataset(id, "/edges/bad", H5T_STD_U16LE, {8, 4});
        }
        H5Dclose(dataset);
        H5Tclose(compound);
    }

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

QTEST_GUILESS_MAIN(TestHostileHdf5)
#include "tst_hostile_hdf5.moc"
