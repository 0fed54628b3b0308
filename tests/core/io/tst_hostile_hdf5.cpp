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
#include "tests/support/hdf5_maker.h"

using namespace planish;

class TestHostileHdf5 : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const std::string &name) const { return m_folder.path().toStdString() + "/" + name; }
    std::string makeFile(const std::string &name, const std::function<void(hid_t)> &add) const
    {
        return makeHdf5(path(name), add);
    }

    /// Reason under which `edge` was refused; empty when it was not.
    static std::string refusalOf(const Dump &dump, const std::string &edge)
    {
        for (const RefusedObject &refused : dump.info().refused)
            if (refused.path == edge)
                return refused.reason;
        return {};
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
        QVERIFY(goodEdgeReads(**dump));
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
        QVERIFY(goodEdgeReads(**dump));
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
        QVERIFY(goodEdgeReads(**unlocked));
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
};

QTEST_GUILESS_MAIN(TestHostileHdf5)
#include "tst_hostile_hdf5.moc"
