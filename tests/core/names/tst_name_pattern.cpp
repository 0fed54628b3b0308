// Patterns, row ranges and row expressions of family files.
#include <QtTest>

#include "core/names/name_pattern.h"
#include "core/names/row_expression.h"

using namespace planish;

class NamePatternTest : public QObject {
    Q_OBJECT

private slots:
    void layerAndExpertAreRead()
    {
        const auto numbers = matchPattern("layers.{l}.experts.{e}.up_proj", "layers.12.experts.3.up_proj");
        QVERIFY(numbers.has_value());
        QCOMPARE(numbers->layer, std::int64_t(12));
        QCOMPARE(numbers->expert, std::int64_t(3));
        QVERIFY(!matchPattern("layers.{l}.q_proj", "layers.x.q_proj"));
        QVERIFY(!matchPattern("layers.{l}.q_proj", "layers..q_proj"));
        QVERIFY(!matchPattern("layers.{l}.q_proj", "layers.1.q_proj.weight"));
        QVERIFY(!matchPattern("layers.{l}.q_proj", "xlayers.1.q_proj"));
        QVERIFY(!matchPattern("layers.{l}.q_proj", "layers.99999999999999999999.q_proj"));
    }

    void alternativesTakeTheFirstThatCanBeFilled()
    {
        const char *pattern = "layers.{l-1}.output_layernorm | embeddings.layernorm";
        QCOMPARE(fillPattern(pattern, {3, -1}), std::string("layers.2.output_layernorm"));
        QCOMPARE(fillPattern(pattern, {0, -1}), std::string("embeddings.layernorm"));
        QCOMPARE(fillPattern("layers.{l}.experts.{e}.up_proj", {3, -1}), std::string());
    }

    void rowRangesAreSplit()
    {
        std::string name;
        std::int64_t begin = 0, end = 0;
        QVERIFY(splitRowRange("layers.0.qkv_proj[16:24]", name, begin, end));
        QCOMPARE(name, std::string("layers.0.qkv_proj"));
        QCOMPARE(begin, std::int64_t(16));
        QCOMPARE(end, std::int64_t(24));
        QVERIFY(splitRowRange("plain", name, begin, end));
        QCOMPARE(end, std::int64_t(-1));
        QVERIFY(!splitRowRange("x[3]", name, begin, end));
        QVERIFY(!splitRowRange("x[5:3]", name, begin, end));
        QVERIFY(!splitRowRange("x[-1:3]", name, begin, end));
    }

    void rowExpressionsFollowPrecedence()
    {
        const RowVariables v{{"q", 16}, {"kv", 8}};
        QCOMPARE(evaluateRows("q+2*kv", v, "x").value(), std::int64_t(32));
        QCOMPARE(evaluateRows("(q+2)*kv - 1", v, "x").value(), std::int64_t(143));
        QCOMPARE(evaluateRows("7", v, "x").value(), std::int64_t(7));
        QCOMPARE(evaluateRows("q-kv-1", v, "x").value(), std::int64_t(7));
    }

    void faultsOfExpressionsAreNamed()
    {
        const RowVariables v{{"q", 16}};
        const auto unknown = evaluateRows("q+kv", v, "qkv.weight");
        QVERIFY(!unknown);
        QVERIFY(toText(unknown.error()).find("kv") != std::string::npos);
        QVERIFY(toText(unknown.error()).find("qkv.weight") != std::string::npos);
        for (const char *broken : {"", "q+", "q/2", "(q", "2q", "q q", "q**2"})
            QVERIFY2(!evaluateRows(broken, v, "x"), broken);
        QVERIFY(!evaluateRows("1000000000000*1000000000000", v, "x"));
    }

    void biasOfAStoredNameFollowsItsEnd()
    {
        QCOMPARE(biasOfStored("a.weight"), std::string("a.bias"));
        QCOMPARE(biasOfStored("LayerNorm.gamma"), std::string("LayerNorm.beta"));
        QCOMPARE(biasOfStored("experts.down_proj"), std::string());
    }
};

QTEST_GUILESS_MAIN(NamePatternTest)
#include "tst_name_pattern.moc"
