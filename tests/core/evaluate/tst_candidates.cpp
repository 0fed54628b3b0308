#include <QtTest>

#include <fstream>
#include <set>

#include <QTemporaryDir>

#include "core/evaluate/compare.h"
#include "core/evaluate/sweep.h"
#include "tests/support/candidates.h"

using namespace planish;
using namespace planish::test;

class TestCandidates : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    Expected<std::vector<Candidate>> read(const std::string &text)
    {
        const std::string file = m_folder.filePath("c.yaml").toStdString();
        std::ofstream(file) << text;
        return readCandidatesFile(file);
    }

private slots:
    void exampleOfTheContractIsRead() // cli.md "Files"
    {
        const auto candidates = read(R"(schema: planish-candidates/1
defaults: {act: "int8:token", weight: "int8:row", seed: 0}
candidates:
  - {name: identity, method: none}
  - {name: smooth 0.6, method: smoothquant, params: {alpha: 0.6}}
  - {name: rotate then smooth, method: [{hadamard: {seeds: 8}}, {smoothquant: {alpha: 0.2}}], act: "int4:token", weight: "int4:row", edges: ["*.mlp_down"]}
)");
        QVERIFY2(candidates.has_value(), candidates ? "" : toText(candidates.error()).c_str());
        QCOMPARE(candidates->size(), std::size_t{3});
        QCOMPARE((*candidates)[0].name, std::string("none")); // a method none under the default specs is renamed
        QCOMPARE((*candidates)[1].chain.front().set.front().second, std::string("0.6"));
        QCOMPARE(chainText((*candidates)[2].chain), std::string("hadamard+smoothquant"));
        QCOMPARE((*candidates)[2].chain[1].set.front().second, std::string("0.2"));
        QCOMPARE(canonicalText((*candidates)[2].act, Role::Activation), std::string("int4:token"));
        QCOMPARE((*candidates)[2].edges, std::vector<std::string>{"*.mlp_down"});
    }
    void identityIsAddedAndComesFirst()
    {
        const auto candidates = read("schema: planish-candidates/1\ndefaults: {act: int8, weight: int8}\ncandidates:\n  - {name: "
                                     "s, method: smoothquant}\n");
        QVERIFY(candidates.has_value());
        QCOMPARE(candidates->front().name, std::string("none"));
        QCOMPARE(candidates->front().chain.front().method, std::string("none"));
        QCOMPARE(candidates->size(), std::size_t{2});
    }
    void faultsAreUsageErrorsWithTheirPath_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("path");
        const QString head = "schema: planish-candidates/1\ndefaults: {act: int8, weight: int8}\ncandidates:\n  - ";
        QTest::newRow("schema") << "schema: other/1\ncandidates: []\n"
                                << "schema";
        QTest::newRow("top key") << "schema: planish-candidates/1\ncandidate: []\n"
                                 << "candidate";
        QTest::newRow("key") << head + "{name: a, method: none, colour: red}\n"
                             << "candidates[0].colour";
        QTest::newRow("defaults key") << "schema: planish-candidates/1\ndefaults: {acts: int8}\ncandidates: []\n"
                                      << "defaults.acts";
        QTest::newRow("parameter") << head + "{name: a, method: smoothquant, params: {alfa: 1}}\n"
                                   << "candidates[0]";
        QTest::newRow("range") << head + "{name: a, method: smoothquant, params: {alpha: 7}}\n"
                               << "candidates[0]";
        QTest::newRow("method") << head + "{name: a, method: smoothqant}\n"
                                << "candidates[0]";
        QTest::newRow("no method") << head + "{name: a}\n"
                                   << "candidates[0].method";
        QTest::newRow("no name") << head + "{method: none}\n"
                                 << "candidates[0].name";
        QTest::newRow("spec") << head + "{name: a, method: none, act: int9}\n"
                              << "candidates[0].act";
        QTest::newRow("seed") << head + "{name: a, method: none, seed: 1e3}\n"
                              << "candidates[0].seed";
        QTest::newRow("twice") << head + "{name: a, method: none, act: int4}\n  - {name: a, method: clip}\n"
                               << "candidates[1].name";
        QTest::newRow("key twice") << head + "{name: a, name: b, method: none}\n"
                                   << "candidates[0].name";
        QTest::newRow("yaml") << "schema: [\n"
                              << "c.yaml";
    }
    void faultsAreUsageErrorsWithTheirPath()
    {
        QFETCH(QString, text);
        QFETCH(QString, path);
        const auto candidates = read(text.toStdString());
        QVERIFY(!candidates);
        QCOMPARE(candidates.error().code, ErrorCode::Usage);
        QVERIFY2(candidates.error().subject.find(path.toStdString()) != std::string::npos, toText(candidates.error()).c_str());
    }
    void missingFileIsADataError()
    {
        const auto candidates = readCandidatesFile(m_folder.filePath("absent.yaml").toStdString());
        QVERIFY(!candidates);
        QCOMPARE(candidates.error().code, ErrorCode::Data);
    }
    void everyPresetStartsWithTheIdentityAndHasUniqueNames()
    {
        QCOMPARE(presetNames(), (std::vector<std::string>{"w8a8", "w4a8", "w4a4", "w4a16", "mxfp4", "nvfp4", "o1", "o2", "o3"}));
        for (const std::string &name : presetNames()) {
            const auto full = presetCandidates(name, Effort::Full), quick = presetCandidates(name, Effort::Quick);
            QVERIFY2(full && quick, (name + (full ? "" : ": " + toText(full.error()))).c_str());
            QVERIFY(quick->size() <= full->size());
            QCOMPARE(full->front().name, std::string("none"));
            std::set<std::string> names;
            for (const Candidate &candidate : *full) {
                QVERIFY2(names.insert(candidate.name).second, candidate.name.c_str());
                const bool built = findMethod(candidate.chain.front().method) != nullptr;
                QCOMPARE(candidate.unavailable, std::string(built ? "" : "not_built"));
            }
        }
    }
    void w8a8ListsTheCandidatesOfTheTable() // evaluation.md 11
    {
        const auto full = presetCandidates("w8a8", Effort::Full), quick = presetCandidates("w8a8", Effort::Quick);
        std::vector<std::string> names;
        for (const Candidate &candidate : *full)
            names.push_back(candidate.name);
        QCOMPARE(names, (std::vector<std::string>{"none", "none at int8:channel", "clip", "llm_int8", "smoothquant alpha=.5",
                                                  "smoothquant search=output", "smoothquant stat=rms", "os_plus", "hadamard",
                                                  "zigzag_hadamard", "smooth_hadamard", "omniquant"}));
        QCOMPARE(quick->size(), names.size() - 1);
        QCOMPARE(canonicalText(full->front().act, Role::Activation), std::string("int8:token"));
        QCOMPARE(canonicalText((*full)[1].act, Role::Activation), std::string("int8:channel"));
    }
    void staticPresetIsO3()
    {
        const auto o3 = presetCandidates("o3", Effort::Full);
        QCOMPARE(canonicalText(o3->front().act, Role::Activation), std::string("int8:tensor:static"));
        QCOMPARE(canonicalText(o3->front().weight, Role::Weight), std::string("int8:tensor"));
        QCOMPARE(o3->size(), std::size_t{3});
    }
    void unknownPresetNamesTheNearest()
    {
        const auto preset = presetCandidates("w8a9", Effort::Full);
        QVERIFY(!preset && preset.error().code == ErrorCode::Usage);
        QVERIFY(preset.error().expected.find("w8a8") != std::string::npos);
    }
    void sweptParametersReplaceWhatTheCandidateHas()
    {
        const Candidate base = candidateOf("smoothquant", "int8:token", "int8:row", {"alpha=0.1", "stat=rms"});
        const auto alpha = withParameter(base, "alpha", .1 + .2); // 0.30000000000000004 is meant as 0.3
        QVERIFY(alpha.has_value());
        QCOMPARE(alpha->chain.front().set.size(), std::size_t{2});
        QCOMPARE(alpha->chain.front().set.back().second, std::string("0.3"));
        QCOMPARE(withParameter(base, "seed", 5)->seed, std::uint64_t{5});
        QCOMPARE(canonicalText(withParameter(base, "act.bits", 4)->act, Role::Activation), std::string("int4:token"));
        QCOMPARE(canonicalText(withParameter(base, "weight.group", 32)->weight, Role::Weight), std::string("int8:group32"));
        QCOMPARE(canonicalText(withParameter(base, "act.clip", .9)->act, Role::Activation), std::string("int8:token:clip=0.9"));
    }
    void sweptValuesOutOfRangeAreUsageErrors()
    {
        const Candidate base = candidateOf("smoothquant", "int8:token", "none");
        for (const auto &[name, value] : std::vector<std::pair<std::string, double>>{{"alpha", 2},
                                                                                     {"alfa", .5},
                                                                                     {"seed", .5},
                                                                                     {"act.bits", 9},
                                                                                     {"act.clip", 0},
                                                                                     {"act.group", 2.5},
                                                                                     {"weight.bits", 4}}) {
            const auto candidate = withParameter(base, name, value);
            QVERIFY2(!candidate && candidate.error().code == ErrorCode::Usage, name.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestCandidates)
#include "tst_candidates.moc"
