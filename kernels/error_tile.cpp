#include "kernels/error_tile.h"

#include <algorithm>
#include <cmath>

namespace planish {

namespace {

constexpr std::size_t kLanes = 8;

double total(const double (&v)[kLanes])
{
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

struct RowLanes {
    double error[kLanes] = {}, reference[kLanes] = {}, activation[kLanes] = {}, weight[kLanes] = {}, cross[kLanes] = {};
    double dot[kLanes] = {}, estimate[kLanes] = {}, largest[kLanes] = {};
};

template <class T, bool kHasActivation, bool kHasWeight, bool kHasCross>
inline void addElement(const ErrorTerms<T> &terms, std::size_t at, double y, RowLanes &lanes, std::size_t lane,
                       double &outputError, double &outputReference)
{
    const double a = kHasActivation ? static_cast<double>(terms.activationOnly[at]) : 0.0;
    const double w = kHasWeight ? static_cast<double>(terms.weightOnly[at]) : 0.0;
    const double c = kHasCross ? static_cast<double>(terms.cross[at]) : 0.0;
    const double e = a + (w + c);
    const double estimate = y + e;
    lanes.error[lane] += e * e;
    lanes.reference[lane] += y * y;
    lanes.activation[lane] += a * a;
    lanes.weight[lane] += w * w;
    lanes.cross[lane] += c * c;
    lanes.dot[lane] += estimate * y;
    lanes.estimate[lane] += estimate * estimate;
    const double magnitude = std::fabs(e);
    lanes.largest[lane] = magnitude > lanes.largest[lane] ? magnitude : lanes.largest[lane];
    outputError += e * e;
    outputReference += y * y;
}

template <class T, bool A, bool W, bool C>
void sumRow(const ErrorTerms<T> &terms, std::size_t offset, std::span<const double> y, RowLanes &lanes, TileSums &sums)
{
    std::size_t n = 0;
    for (; n + kLanes <= y.size(); n += kLanes) {
        for (std::size_t j = 0; j < kLanes; ++j) {
            addElement<T, A, W, C>(terms, offset + n + j, y[n + j], lanes, j, sums.outputError[n + j],
                                   sums.outputReference[n + j]);
        }
    }
    for (; n < y.size(); ++n) {
        addElement<T, A, W, C>(terms, offset + n, y[n], lanes, 0, sums.outputError[n], sums.outputReference[n]);
    }
}

template <class T>
void sumAnyRow(const ErrorTerms<T> &terms, std::size_t offset, std::span<const double> y, RowLanes &lanes, TileSums &sums)
{
    if (terms.activationOnly && terms.weightOnly && terms.cross) {
        sumRow<T, true, true, true>(terms, offset, y, lanes, sums);
    } else if (terms.activationOnly && terms.weightOnly) {
        sumRow<T, true, true, false>(terms, offset, y, lanes, sums);
    } else if (terms.activationOnly) {
        sumRow<T, true, false, false>(terms, offset, y, lanes, sums);
    } else if (terms.weightOnly) {
        sumRow<T, false, true, false>(terms, offset, y, lanes, sums);
    } else {
        sumRow<T, false, false, false>(terms, offset, y, lanes, sums);
    }
}

template <class T> double errorAt(const ErrorTerms<T> &terms, std::size_t at)
{
    const double a = terms.activationOnly ? static_cast<double>(terms.activationOnly[at]) : 0.0;
    const double w = terms.weightOnly ? static_cast<double>(terms.weightOnly[at]) : 0.0;
    const double c = terms.cross ? static_cast<double>(terms.cross[at]) : 0.0;
    return a + (w + c);
}

} // namespace

template <class T>
TileSums sumTile(const ErrorTerms<T> &terms, ConstViewD reference, std::size_t firstRow, std::size_t firstOutput)
{
    TileSums sums;
    for (auto *rows : {&sums.rowError, &sums.rowReference, &sums.rowActivationOnly, &sums.rowWeightOnly, &sums.rowCross,
                       &sums.rowDot, &sums.rowEstimate}) {
        rows->resize(reference.rows);
    }
    sums.outputError.resize(reference.cols);
    sums.outputReference.resize(reference.cols);
    sums.maxRow = firstRow;
    sums.maxOutput = firstOutput;
    for (std::size_t r = 0; r < reference.rows; ++r) {
        RowLanes lanes;
        sumAnyRow(terms, r * terms.stride, reference.row(r), lanes, sums);
        sums.rowError[r] = total(lanes.error);
        sums.rowReference[r] = total(lanes.reference);
        sums.rowActivationOnly[r] = total(lanes.activation);
        sums.rowWeightOnly[r] = total(lanes.weight);
        sums.rowCross[r] = total(lanes.cross);
        sums.rowDot[r] = total(lanes.dot);
        sums.rowEstimate[r] = total(lanes.estimate);
        const double largest = *std::max_element(lanes.largest, lanes.largest + kLanes);
        if (largest > sums.maxAbs) {
            sums.maxAbs = largest;
            sums.maxRow = firstRow + r;
            std::size_t n = 0;
            while (n + 1 < reference.cols && std::fabs(errorAt(terms, r * terms.stride + n)) != largest) {
                ++n;
            }
            sums.maxOutput = firstOutput + n;
        }
    }
    return sums;
}

template TileSums sumTile<float>(const ErrorTerms<float> &, ConstViewD, std::size_t, std::size_t);
template TileSums sumTile<double>(const ErrorTerms<double> &, ConstViewD, std::size_t, std::size_t);

ResidualSums emptySums(std::size_t rows, std::size_t outputs, TermDetail detail)
{
    ResidualSums sums;
    for (auto *perRow : {&sums.rowError, &sums.rowReference, &sums.rowDot, &sums.rowEstimate}) {
        perRow->resize(rows);
    }
    if (detail == TermDetail::All) {
        for (auto *perRow : {&sums.rowActivationOnly, &sums.rowWeightOnly, &sums.rowCross}) {
            perRow->resize(rows);
        }
    }
    sums.outputError.resize(outputs);
    sums.outputReference.resize(outputs);
    return sums;
}

void addTile(const TileSums &tile, std::size_t firstRow, std::size_t firstOutput, ResidualSums &sums)
{
    const auto add = [](const std::vector<double> &from, std::size_t first, std::vector<double> &into) {
        for (std::size_t i = 0; i < from.size() && !into.empty(); ++i) {
            into[first + i] += from[i];
        }
    };
    add(tile.rowError, firstRow, sums.rowError);
    add(tile.rowReference, firstRow, sums.rowReference);
    add(tile.rowActivationOnly, firstRow, sums.rowActivationOnly);
    add(tile.rowWeightOnly, firstRow, sums.rowWeightOnly);
    add(tile.rowCross, firstRow, sums.rowCross);
    add(tile.rowDot, firstRow, sums.rowDot);
    add(tile.rowEstimate, firstRow, sums.rowEstimate);
    add(tile.outputError, firstOutput, sums.outputError);
    add(tile.outputReference, firstOutput, sums.outputReference);
    const bool earlier = tile.maxRow < sums.maxRow || (tile.maxRow == sums.maxRow && tile.maxOutput < sums.maxOutput);
    if (tile.maxAbs > sums.maxAbs || (tile.maxAbs == sums.maxAbs && tile.maxAbs > 0.0 && earlier)) {
        sums.maxAbs = tile.maxAbs;
        sums.maxRow = tile.maxRow;
        sums.maxOutput = tile.maxOutput;
    }
}

} // namespace planish
