#include <QtTest>

#include <cmath>

#include "core/geometry/max_image.h"
#include "tests/support/memory_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

float largestOf(const MaxImage &image)
{
    float best = 0;
    for (float v : image.value)
        best = std::abs(v) > std::abs(best) ? v : best;
    return best;
}

double directMaximum(const MatrixD &x, const MaxImage &image)
{
    double best = 0;
    for (std::uint64_t r = image.rowBegin; r < image.rowEnd; ++r)
        for (std::uint64_t k = image.channelBegin; k < image.channelEnd; ++k)
            best = std::max(best, std::abs(x(r, k)));
    return best;
}

} // namespace

class TestMaxImage : public QObject {
    Q_OBJECT
private slots:
    void plantedPixelSurvivesEveryZoom()
    {
        MatrixD x = wavyMatrix(211, 333, 4);
        for (double &v : x.values())
            v = std::fmod(v, 1.0);
        x(137, 251) = -77.0;
        const auto pyramid = MaxPyramid::fromValues(x.view());
        for (std::size_t most : {1, 2, 3, 5, 16, 40, 100, 211, 1000}) {
            for (std::uint64_t margin : {0, 1, 7, 50, 137}) {
                const MaxImageRequest window{137 - margin, std::min<std::uint64_t>(211, 138 + margin),
                                             251 - margin, std::min<std::uint64_t>(333, 252 + 2 * margin),
                                             most,         most + 3};
                const MaxImage image = pyramid->window(window);
                QCOMPARE(largestOf(image), -77.0f);
                QVERIFY(image.rows <= most && image.cols <= most + 3);
                QVERIFY(image.rowBegin <= window.rowBegin && image.rowEnd >= window.rowEnd);
                QVERIFY(image.channelBegin <= window.channelBegin && image.channelEnd >= window.channelEnd);
            }
        }
    }
    void everyCellIsTheMaximumOfWhatItCovers()
    {
        const MatrixD x = wavyMatrix(45, 70, 8);
        const auto pyramid = MaxPyramid::fromValues(x.view());
        const MaxImage image = pyramid->window({3, 44, 5, 66, 11, 9});
        const std::uint64_t rowCell = (image.rowEnd - image.rowBegin + image.rows - 1) / image.rows, colCell = 8;
        QCOMPARE(rowCell, std::uint64_t(4));
        for (std::size_t r = 0; r < image.rows; ++r)
            for (std::size_t c = 0; c < image.cols; ++c) {
                MaxImage cell;
                cell.rowBegin = image.rowBegin + r * 4;
                cell.rowEnd = std::min<std::uint64_t>(cell.rowBegin + 4, 45);
                cell.channelBegin = image.channelBegin + c * colCell;
                cell.channelEnd = std::min<std::uint64_t>(cell.channelBegin + colCell, 70);
                QCOMPARE(std::abs(image.value[r * image.cols + c]), float(directMaximum(x, cell)));
            }
    }
    void aLongNarrowWindowKeepsItsChannels()
    {
        const auto pyramid = MaxPyramid::fromValues(wavyMatrix(400, 64).view());
        const MaxImage image = pyramid->window({0, 400, 10, 30, 25, 100});
        QCOMPARE(image.cols, std::size_t(20));
        QCOMPARE(image.rows, std::size_t(25));
    }
    void largeEdgesKeepABoundedBaseAndReadTheRest()
    {
        MemoryDump dump(512);
        MatrixD x(4200, 4096); // just above the cells a base may hold
        x(3000, 3001) = 12.5;
        x(3001, 3001) = -3.0;
        const DumpEdge &edge = dump.add("e", x, StoredType::F16);
        auto pyramid = MaxPyramid::build(dump, edge, {});
        QVERIFY(pyramid);
        QCOMPARE((*pyramid)->baseLevel(), 1);
        QCOMPARE(largestOf((*pyramid)->window({0, 4200, 0, 4096, 1, 1})), 12.5f);
        auto fine = maxImage(dump, edge, **pyramid, {2990, 3010, 2990, 3010, 100, 100}, {});
        QVERIFY(fine);
        QCOMPARE(fine->rows, std::size_t(20));
        QCOMPARE(fine->value[10 * 20 + 11], 12.5f);
        QCOMPARE(fine->value[11 * 20 + 11], -3.0f);
        auto coarse = maxImage(dump, edge, **pyramid, {0, 4200, 0, 4096, 300, 300}, {});
        QCOMPARE(largestOf(*coarse), 12.5f);
    }
    void buildEqualsValuesInMemory()
    {
        const MatrixD x = wavyMatrix(50, 30);
        MemoryDump dump;
        const DumpEdge &edge = dump.add("e", x, StoredType::F64);
        auto built = MaxPyramid::build(dump, edge, {});
        const MaxImageRequest window{0, 50, 0, 30, 13, 8};
        QCOMPARE((*built)->window(window).value, MaxPyramid::fromValues(x.view())->window(window).value);
    }
    void nonFiniteValuesAreNotMaxima()
    {
        MatrixD x(2, 2);
        x(0, 0) = std::numeric_limits<double>::quiet_NaN();
        x(0, 1) = std::numeric_limits<double>::infinity();
        x(1, 1) = 3;
        QCOMPARE(largestOf(MaxPyramid::fromValues(x.view())->window({0, 2, 0, 2, 1, 1})), 3.0f);
    }
    void anEmptyWindowIsAnEmptyImage()
    {
        const auto pyramid = MaxPyramid::fromValues(wavyMatrix(4, 4).view());
        QVERIFY(pyramid->window({2, 2, 0, 4, 9, 9}).value.empty());
        QVERIFY(pyramid->window({9, 12, 0, 4, 9, 9}).value.empty());
    }
};

QTEST_GUILESS_MAIN(TestMaxImage)
#include "tst_max_image.moc"
