// Basis and row hashes against values computed by an independent script (hashlib over the bytes plan.md lists).
#include <QtTest>

#include "core/plan/hashes.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

class TestBasisHash : public QObject {
    Q_OBJECT
private slots:
    void basisHashIsThatOfTheWrittenRule()
    {
        QTemporaryDir folder;
        const std::string file = folder.filePath("m.safetensors").toStdString();
        writeCheckpoint(file, {{"b.weight", {{2, 3}, {1.0, -2.0, 0.5, 0.25, 65504.0, -0.0}}}, {"a.bias", {{2}, {3.0, 4.0}}}, {"c", {{1}, {9.0}}}},
                        StoredType::F16);
        const auto checkpoint = orThrow(openCheckpoint(file));
        // python: sha256(u64le(len name) name u64le(len dtype) dtype u64le(rank) u64le(dims)... u64le(len bytes) bytes) of a.bias, b.weight
        QCOMPARE(orThrow(basisHash(*checkpoint, {"b.weight", "a.bias"})), std::string("sha256:c3054218286e945bc22edf24a3007f44be67a501c02e0d5770dc40b66739cebe"));
        QCOMPARE(orThrow(basisHash(*checkpoint, {"a.bias", "b.weight", "a.bias"})), std::string("sha256:c3054218286e945bc22edf24a3007f44be67a501c02e0d5770dc40b66739cebe"));
    }

    void aMissingTensorIsNamed()
    {
        QTemporaryDir folder;
        const std::string file = folder.filePath("m.safetensors").toStdString();
        writeCheckpoint(file, {{"c", {{1}, {9.0}}}}, StoredType::F32);
        const auto hash = basisHash(*orThrow(openCheckpoint(file)), {"c", "d"});
        QVERIFY(!hash);
        QCOMPARE(hash.error().rule, std::string("basis_mismatch"));
        QVERIFY(toText(hash.error()).find(" d;") != std::string::npos);
    }

    void rowHashIsThatOfTheWrittenRule()
    {
        TokenTable tokens;
        tokens.request = {0, 0, 1};
        tokens.position = {0, 1, 0};
        tokens.id = {5, -1, 70000};
        // python: sha256(struct.pack('<6i', 0, 0, 5, 1, 0, 70000))
        QCOMPARE(rowsSha256(tokens, {0, 2}), std::string("7b17e73fe8945090e0c6157d15556c95cca82c19c44460976f89f73793d89466"));
    }
};

QTEST_GUILESS_MAIN(TestBasisHash)
#include "tst_basis_hash.moc"
