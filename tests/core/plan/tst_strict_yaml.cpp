// The strict YAML of manifests: what a scalar is, what is refused before expansion, and that our own text reads back.
#include <QtTest>

#include "core/plan/strict_yaml.h"
#include "core/plan/yaml_emit.h"

using namespace planish;

namespace {

ScalarKind kindOfText(const std::string &text)
{
    const auto tree = parseStrictYaml("t.yaml", "a: " + text + "\n");
    return tree ? kindOf(tree->items.at(0)) : ScalarKind::Null;
}

std::string errorOf(const std::string &text)
{
    const auto tree = parseStrictYaml("t.yaml", text);
    return tree ? std::string() : toText(tree.error());
}

} // namespace

class TestStrictYaml : public QObject {
    Q_OBJECT
private slots:
    void scalarsOfBothYamlVersionsAreTold_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("kind");
        const std::pair<const char *, ScalarKind> rows[] = {
            {"12", ScalarKind::Integer},          {"-7", ScalarKind::Integer},       {"0", ScalarKind::Integer},
            {"010", ScalarKind::OddNumber},       {"0o200", ScalarKind::OddNumber},  {"0x1f", ScalarKind::OddNumber},
            {"1e3", ScalarKind::OddNumber},       {"1_000", ScalarKind::OddNumber},  {"1:30", ScalarKind::OddNumber},
            {"1.5", ScalarKind::Real},            {"-1.0e-05", ScalarKind::Real},    {"1.10", ScalarKind::Real},
            {".inf", ScalarKind::NonFinite},      {"-.INF", ScalarKind::NonFinite},  {".nan", ScalarKind::NonFinite},
            {"true", ScalarKind::Boolean},        {"no", ScalarKind::AmbiguousBoolean}, {"off", ScalarKind::AmbiguousBoolean},
            {"null", ScalarKind::Null},           {"~", ScalarKind::Null},           {"0.1.0", ScalarKind::Text},
            {"\"12\"", ScalarKind::Text},         {"'no'", ScalarKind::Text},        {"layers.2.attn_in", ScalarKind::Text}};
        for (const auto &[text, kind] : rows)
            QTest::newRow(text) << QString(text) << static_cast<int>(kind);
    }
    void scalarsOfBothYamlVersionsAreTold()
    {
        QFETCH(QString, text);
        QFETCH(int, kind);
        QCOMPARE(static_cast<int>(kindOfText(text.toStdString())), kind);
    }

    void structureIsRefusedBeforeExpansion_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("word");
        QTest::newRow("anchor") << QString("a: &x [1]\n") << QString("anchor");
        QTest::newRow("alias") << QString("a: [1]\nb: *x\n") << QString("line 2");
        QTest::newRow("duplicate") << QString("a: 1\nb: {c: 1, c: 2}\n") << QString("duplicate key c");
        QTest::newRow("tag") << QString("a: !!python/object 1\n") << QString("tag");
        QTest::newRow("second document") << QString("a: 1\n---\nb: 1\n") << QString("second document");
        QTest::newRow("deep") << QString("a: ") + QString("[").repeated(60) + QString("]").repeated(60) << QString("deeper");
        QTest::newRow("deeper than the parser") << QString("[").repeated(20000) << QString("t.yaml");
        QTest::newRow("zero byte") << QString("a: 1") + QChar(0) + QString("\n") << QString("zero byte");
        QTest::newRow("no yaml") << QString("a: [1, 2\nb: }") << QString("line");
        QTest::newRow("empty") << QString("") << QString("empty");
    }
    void structureIsRefusedBeforeExpansion()
    {
        QFETCH(QString, text);
        QFETCH(QString, word);
        const std::string error = errorOf(text.toStdString());
        QVERIFY2(QString::fromStdString(error).contains(word), error.c_str());
    }

    void writtenNumbersReadBackExactly()
    {
        for (const double value : {0.1 + 0.2, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -0.0, 1e22, 6.02e23, 123456789.0}) {
            YamlErrors errors{"t.yaml", {}, {}};
            const auto tree = parseStrictYaml("t.yaml", "a: " + yamlNumber(value) + "\n");
            QVERIFY(tree.has_value());
            const double read = YamlReader(errors, &*tree, "")["a"].number();
            QVERIFY(!errors.first);
            QCOMPARE(std::bit_cast<std::uint64_t>(read), std::bit_cast<std::uint64_t>(value));
        }
    }

    void writtenTextsStayTexts()
    {
        for (const std::string text : {"no", "12", "1e3", "a: b", "", " x", "sha256:00", "*glob", "line\nbreak", "\u00fc", "-", "{", "0.1.0", "true"}) {
            YamlErrors errors{"t.yaml", {}, {}};
            const auto tree = parseStrictYaml("t.yaml", "a: " + yamlText(text) + "\n");
            QVERIFY2(tree.has_value(), text.c_str());
            QCOMPARE(YamlReader(errors, &*tree, "")["a"].text(), text);
            QVERIFY(!errors.first);
        }
    }
};

QTEST_GUILESS_MAIN(TestStrictYaml)
#include "tst_strict_yaml.moc"
