// Small files of the room: errors, printable names, nearest names, atomic files, hashes, kinds of files.
#include <QtTest>

#include <QTemporaryDir>

#include <filesystem>
#include <fstream>

#include "core/io/atomic_file.h"
#include "core/io/error.h"
#include "core/io/file_key.h"
#include "core/io/file_kind.h"
#include "core/io/file_lock.h"
#include "core/io/nearest.h"
#include "core/io/printable.h"

using namespace planish;

namespace {

std::string contentOf(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t filesIn(const QTemporaryDir &folder)
{
    std::size_t count = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(folder.path().toStdString()))
        ++count;
    return count;
}

} // namespace

class TestFiles : public QObject {
    Q_OBJECT
private slots:
    void errorsReadAsSubjectWhatExpected()
    {
        QCOMPARE(toText(dataError("a.h5", "is truncated", "the whole file").value()),
                 std::string("a.h5: is truncated; the whole file"));
        QCOMPARE(toText(Error{ErrorCode::Data, "", "what", "", ""}), std::string("what"));
    }

    void exitCodesAreThoseOfTheCommandLine()
    {
        QCOMPARE(exitCode(usageError("", "", "").value()), 2);
        QCOMPARE(exitCode(dataError("", "", "").value()), 1);
        QCOMPARE(exitCode(refusal("", "", "", "rule").value()), 1);
        QCOMPARE(exitCode(cancelled("").value()), 3);
        QCOMPARE(exitCode(machineError("", "", "").value()), 4);
    }

    void controlCharactersNeverReachTheTerminal()
    {
        QCOMPARE(printable("esc\x1b[31m\n\x7f"), std::string("esc\\x1b[31m\\x0a\\x7f"));
        QCOMPARE(printable("\xff\xfe\x80"), std::string("\\xff\\xfe\\x80"));
        QCOMPARE(printable("schicht_\xc3\xbc_\xe5\xb1\x82"), std::string("schicht_\xc3\xbc_\xe5\xb1\x82"));
        QCOMPARE(printable("\xc0\xaf \xed\xa0\x80 \xc2\x9b"), std::string("\\xc0\\xaf \\xed\\xa0\\x80 \\xc2\\x9b"));
        QVERIFY(isPrintable("layers.2.attn_in") && !isPrintable("a\tb"));
        QVERIFY(toText(Error{ErrorCode::Data, "a\x1b[0m", "b", "c", ""}).find('\x1b') == std::string::npos);
    }

    void nearestNamesComeFirst()
    {
        const std::vector<std::string> names{"layers.2.mlp_down", "layers.2.attn_in", "layers.2.attn_out", "layers.28.attn_in"};
        QCOMPARE(nearestNames("layers.2.atn_in", names, 2), (std::vector<std::string>{"layers.2.attn_in", "layers.28.attn_in"}));
        QCOMPARE(nearestText("layers.2.atn_in", names, 3),
                 std::string("layers.2.attn_in, layers.28.attn_in or layers.2.attn_out"));
        QVERIFY(nearestNames("x", {}).empty());
    }

    void committedFileHasTheContent()
    {
        const QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/out.txt";
        QVERIFY(writeFileAtomically(path, "first"));
        QVERIFY(writeFileAtomically(path, "second"));
        QCOMPARE(contentOf(path), std::string("second"));
        QCOMPARE(filesIn(folder), std::size_t{1});
    }

    void abandonedFileLeavesNothingAndTheOldOneStays()
    {
        const QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/out.txt";
        QVERIFY(writeFileAtomically(path, "old"));
        {
            auto file = AtomicFile::create(path);
            QVERIFY(file && file->write(std::string_view("half")));
            QCOMPARE(filesIn(folder), std::size_t{2});
        }
        QCOMPARE(filesIn(folder), std::size_t{1});
        QCOMPARE(contentOf(path), std::string("old"));
    }

    void missingFolderIsADataErrorNamingThePath()
    {
        const QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/none/out.txt";
        const auto written = writeFileAtomically(path, "x");
        QVERIFY(!written);
        QCOMPARE(written.error().subject, path);
        QCOMPARE(exitCode(written.error()), 1);
    }

    void fullDiskIsAMachineError()
    {
        if (!std::filesystem::exists("/dev/full"))
            QSKIP("no /dev/full here");
        QCOMPARE(exitCode(writeError("out", ENOSPC).value()), 4);
        QCOMPARE(exitCode(writeError("out", EACCES).value()), 1);
    }

    void renameOntoAFolderFailsAndLeavesNothing()
    {
        const QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/taken";
        std::filesystem::create_directory(path);
        std::filesystem::create_directory(path + "/inside");
        QVERIFY(!writeFileAtomically(path, "x"));
        QCOMPARE(filesIn(folder), std::size_t{1});
    }

    void hashesAreThoseOfTheStandard()
    {
        // FIPS 180-4 examples.
        const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        QCOMPARE(sha256Hex("abc"), abc);
        QCOMPARE(sha256Hex(""), std::string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        const QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/abc";
        QVERIFY(writeFileAtomically(path, "abc"));
        QCOMPARE(sha256OfFile(path).value(), abc);
    }

    void cacheKeyFollowsContentRequestAndVersion()
    {
        const QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/dump";
        QVERIFY(writeFileAtomically(path, std::string(3000000, 'a')));
        const std::string key = cacheKey(path, "tau=6", "1").value();
        QCOMPARE(cacheKey(path, "tau=6", "1").value(), key);
        QVERIFY(cacheKey(path, "tau=5", "1").value() != key);
        QVERIFY(cacheKey(path, "tau=6", "2").value() != key);
        std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(2999999).put('b');
        QVERIFY(cacheKey(path, "tau=6", "1").value() != key);
    }

    void kindsAreKnownByTheirFirstBytes_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<int>("kind");
        QTest::newRow("hdf5") << "a" << QByteArray("\x89HDF\r\n\x1a\n", 8) << static_cast<int>(FileKind::Hdf5);
        QTest::newRow("broken hdf5") << "a.h5" << QByteArray("xHDF") << static_cast<int>(FileKind::Hdf5);
        QTest::newRow("safetensors") << "a" << QByteArray("\x02\0\0\0\0\0\0\0{}", 10) << static_cast<int>(FileKind::Safetensors);
        QTest::newRow("named") << "a.safetensors" << QByteArray("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)
                               << static_cast<int>(FileKind::Safetensors);
        QTest::newRow("gguf") << "a.dat" << QByteArray("GGUF\3") << static_cast<int>(FileKind::Gguf);
        QTest::newRow("zip") << "a" << QByteArray("PK\3\4") << static_cast<int>(FileKind::Pickle);
        QTest::newRow("pickle") << "a" << QByteArray("\x80\x02}") << static_cast<int>(FileKind::Pickle);
        QTest::newRow("text") << "a.txt" << QByteArray("hello") << static_cast<int>(FileKind::Unknown);
    }
    void kindsAreKnownByTheirFirstBytes()
    {
        QFETCH(QString, name);
        QFETCH(QByteArray, bytes);
        QFETCH(int, kind);
        const QTemporaryDir folder;
        const std::string path = (folder.path() + "/" + name).toStdString();
        QVERIFY(writeFileAtomically(path, bytes.toStdString()));
        QCOMPARE(static_cast<int>(fileKindOf(path).value()), kind);
    }

    void lockErrorNamesFileAndFlag()
    {
        const char *reason = "unable to lock file, errno = 11, error message = 'Resource temporarily unavailable'";
        QVERIFY(isLockFailure(reason) && !isLockFailure("truncated file"));
        const std::string text = toText(lockError("run.h5", reason).value());
        QVERIFY(text.find("run.h5") == 0 && text.find("--no-lock") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestFiles)
#include "tst_files.moc"
