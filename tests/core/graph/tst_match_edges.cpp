// Globs, short forms and the three nearest names.
#include <QtTest>

#include "core/graph/model_graph.h"

using namespace planish;

namespace {

ModelGraph graphOf(const std::vector<std::string> &ids)
{
    ModelGraph graph;
    for (const std::string &id : ids) {
        Edge edge;
        edge.id = {id};
        graph.edges.push_back(edge);
    }
    return graph;
}

std::string joined(const Expected<std::vector<EdgeId>> &ids)
{
    std::string text;
    for (const EdgeId &id : ids.value_or(std::vector<EdgeId>{}))
        text += (text.empty() ? "" : " ") + id.value;
    return text;
}

} // namespace

class MatchEdgesTest : public QObject {
    Q_OBJECT

private slots:
    void patternsSelectInDumpOrder_data()
    {
        QTest::addColumn<QString>("glob");
        QTest::addColumn<QString>("matched");
        QTest::newRow("exact") << "layers.2.mlp_in"
                               << "layers.2.mlp_in";
        QTest::newRow("star over dots") << "*.mlp_down"
                                        << "layers.2.mlp_down layers.28.mlp_down";
        QTest::newRow("question mark is one") << "layers.?.attn_in"
                                              << "layers.2.attn_in";
        QTest::newRow("star in a number") << "layers.2*.mlp_down"
                                          << "layers.2.mlp_down layers.28.mlp_down";
        QTest::newRow("short down") << "L28.down"
                                    << "layers.28.mlp_down";
        QTest::newRow("short site") << "L2.attn_in"
                                    << "layers.2.attn_in";
        QTest::newRow("short with star") << "L*.down"
                                         << "layers.2.mlp_down layers.28.mlp_down";
        QTest::newRow("short qkv") << "L2.qkv"
                                   << "layers.2.attn_in";
        QTest::newRow("hostile stars end soon") << "*a*a*a*a*a*a*a*a*a*a*a*a*b*"
                                                << "";
    }
    void patternsSelectInDumpOrder()
    {
        QFETCH(QString, glob);
        QFETCH(QString, matched);
        const ModelGraph graph =
            graphOf({"layers.2.attn_in", "layers.2.mlp_in", "layers.2.mlp_down", "layers.28.mlp_down", std::string(60, 'a')});
        QCOMPARE(QString::fromStdString(joined(matchEdges(graph, {glob.toStdString()}))), matched);
    }

    void noGlobIsEveryEdgeAndDoublesAreListedOnce()
    {
        const ModelGraph graph = graphOf({"layers.2.attn_in", "layers.2.mlp_in"});
        QCOMPARE(joined(matchEdges(graph, {})), std::string("layers.2.attn_in layers.2.mlp_in"));
        QCOMPARE(joined(matchEdges(graph, {"*.mlp_in", "layers.2.*"})), std::string("layers.2.attn_in layers.2.mlp_in"));
    }

    void noMatchIsUsageWithNearestNames()
    {
        const auto ids =
            matchEdges(graphOf({"layers.2.attn_in", "layers.2.mlp_down", "layers.28.mlp_down", "x"}), {"layers.2.mlp_dwn"});
        QVERIFY(!ids);
        QCOMPARE(exitCode(ids.error()), 2);
        QVERIFY2(toText(ids.error()).find("layers.2.mlp_down") != std::string::npos, toText(ids.error()).c_str());
    }
};

QTEST_GUILESS_MAIN(MatchEdgesTest)
#include "tst_match_edges.moc"
