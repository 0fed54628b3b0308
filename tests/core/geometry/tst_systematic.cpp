#include <QtTest>

#include "core/geometry/findings.h"

using namespace planish;

namespace {

// Hits per channel in M = 50 rows of one layer's input; values 6.0 itself, so the comparator is seen.
Statistics layerWithHits(std::vector<int> hits, int rows = 50)
{
    MatrixD x(std::size_t(rows), hits.size());
    for (std::size_t k = 0; k < hits.size(); ++k)
        for (int r = 0; r < hits[k]; ++r)
            x(std::size_t(r), k) = r % 2 ? 6.0 : -6.0;
    return statisticsOf(x.view());
}

Edge edgeAt(std::int64_t layer, const std::string &site)
{
    Edge edge;
    edge.layer = layer;
    edge.site = site;
    return edge;
}

} // namespace

class TestSystematic : public QObject {
    Q_OBJECT
private slots:
    void traceOfTheReference() // diagonal.md 1.3
    {
        const std::vector<std::vector<int>> hits = {{48, 50, 2}, {50, 0, 3}, {0, 0, 1}, {49, 0, 2}};
        std::vector<std::pair<Edge, Statistics>> edges;
        for (std::size_t l = 0; l < 4; ++l)
            edges.emplace_back(edgeAt(std::int64_t(l), "attn_in"), layerWithHits(hits[l]));
        const auto found = systematicDimensions(edges);
        QCOMPARE(found.size(), std::size_t(2));
        QCOMPARE(found[0].channel, 0);
        QCOMPARE(found[0].layerFraction, .75);
        QCOMPARE(found[0].positionFractionAll, .735);
        QCOMPARE(found[0].positionFractionAffected, .98);
        QCOMPARE(found[0].layers, (std::vector<std::int64_t>{0, 1, 3}));
        QCOMPARE(found[1].channel, 1);
        QCOMPARE(found[1].layerFraction, .25);
        QCOMPARE(found[1].positionFractionAll, .25);
    }
    void eitherInputHitsALayerAndOtherSitesDoNotCount()
    {
        std::vector<std::pair<Edge, Statistics>> edges;
        edges.emplace_back(edgeAt(0, "attn_in"), layerWithHits({0}));
        edges.emplace_back(edgeAt(0, "mlp_in"), layerWithHits({25}));
        edges.emplace_back(edgeAt(0, "mlp_down"), layerWithHits({50}));
        edges.emplace_back(edgeAt(1, "attn_in"), layerWithHits({0}));
        edges.emplace_back(edgeAt(1, "mlp_in"), layerWithHits({0}));
        const auto found = systematicDimensions(edges);
        QCOMPARE(found.size(), std::size_t(1));
        QCOMPARE(found[0].layerFraction, .5);
        QCOMPARE(found[0].positionFractionAll, .125);
        QCOMPARE(found[0].positionFractionAffected, .5);
    }
    void positionsBelowSixPercentAreNotSystematic()
    {
        std::vector<std::pair<Edge, Statistics>> edges;
        edges.emplace_back(edgeAt(0, "attn_in"), layerWithHits({5, 6}, 100));
        const auto found = systematicDimensions(edges);
        QCOMPARE(found.size(), std::size_t(1));
        QCOMPARE(found[0].channel, 1);
    }
    void edgesThatDidNotCountTheThresholdAreLeftOut()
    {
        MatrixD x(10, 1);
        for (std::size_t r = 0; r < 10; ++r)
            x(r, 0) = 8;
        std::vector<std::pair<Edge, Statistics>> edges;
        edges.emplace_back(edgeAt(0, "attn_in"), statisticsOf(x.view(), 3.0));
        QVERIFY(systematicDimensions(edges).empty());
        QCOMPARE(systematicDimensions(edges, 3.0).size(), std::size_t(1));
    }
};

QTEST_GUILESS_MAIN(TestSystematic)
#include "tst_systematic.moc"
