// Jackknife over held-out requests or contiguous blocks, and the paired form that decides ties. evaluation.md 7.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/evaluate/compare.h"
#include "core/evaluate/jackknife.h"

namespace planish {
namespace {

constexpr std::size_t kUnits = 8; ///< requests needed, and blocks formed otherwise

// Two-sided 95 % points of Student's t, degrees of freedom 1..30 (standard tables); above, the expansion below is exact to 1e-4.
constexpr std::array<double, 30> kStudent = {12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836, 2.446911851,
                                             2.364624252,  2.306004135, 2.262157163, 2.228138852, 2.200985160, 2.178812830,
                                             2.160368656,  2.144786688, 2.131449546, 2.119905299, 2.109815578, 2.100922040,
                                             2.093024054,  2.085963447, 2.079613845, 2.073873068, 2.068657610, 2.063898562,
                                             2.059538553,  2.055529439, 2.051830516, 2.048407142, 2.045229642, 2.042272456};

} // namespace

double studentQuantile(std::size_t degrees)
{
    if (degrees == 0)
        return 0.0;
    if (degrees <= kStudent.size())
        return kStudent[degrees - 1];
    // Cornish-Fisher expansion around the normal quantile (Abramowitz and Stegun 26.7.5).
    const double z = 1.959963984540054, n = static_cast<double>(degrees);
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

JackknifeUnits jackknifeUnits(const ErrorSums &sums)
{
    const std::size_t rows = sums.sums.rowError.size();
    std::map<std::int32_t, std::int32_t> requests;
    for (const std::int32_t request : sums.rowRequests)
        requests.try_emplace(request, 0);
    JackknifeUnits units;
    if (requests.size() >= kUnits) {
        std::int32_t next = 0;
        for (auto &[request, index] : requests)
            index = next++;
        units.count = requests.size();
        units.name = "request";
        for (const std::int32_t request : sums.rowRequests)
            units.ofRow.push_back(requests[request]);
        return units;
    }
    units.count = std::min(rows, kUnits);
    units.name = "block";
    std::vector<std::size_t> order(rows); // contiguous blocks of counted rows in file order
    for (std::size_t m = 0; m < rows; ++m)
        order[m] = m;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sums.fileRows[a] < sums.fileRows[b]; });
    units.ofRow.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) // the first rows % count blocks are one row longer
        units.ofRow[order[i]] = static_cast<std::int32_t>(i < (rows % units.count) * (rows / units.count + 1)
                                                              ? i / (rows / units.count + 1)
                                                              : (i - rows % units.count) / (rows / units.count));
    return units;
}

std::vector<double> leaveOneOut(const ErrorSums &sums, const JackknifeUnits &units, RankBy by)
{
    std::vector<double> error(units.count), reference(units.count), rows(units.count);
    for (std::size_t m = 0; m < units.ofRow.size(); ++m) {
        const auto unit = static_cast<std::size_t>(units.ofRow[m]);
        if (by == RankBy::Rows) {
            if (sums.sums.rowReference[m] > 0) {
                error[unit] += sums.sums.rowError[m] / sums.sums.rowReference[m];
                reference[unit] += 1;
            }
        } else {
            error[unit] += sums.sums.rowError[m];
            reference[unit] += sums.sums.rowReference[m];
        }
    }
    std::vector<double> left(units.count);
    for (std::size_t j = 0; j < units.count; ++j) {
        double e = 0, r = 0; // summed without unit j: a difference of totals would cancel on an edge owned by one row
        for (std::size_t i = 0; i < units.count; ++i) {
            e += i == j ? 0 : error[i];
            r += i == j ? 0 : reference[i];
        }
        left[j] = r > 0 ? std::sqrt(e / r) : 0;
    }
    return left;
}

double jackknifeError(const std::vector<double> &leaveOneOut)
{
    const auto count = static_cast<double>(leaveOneOut.size());
    double mean = 0, squares = 0;
    for (const double value : leaveOneOut)
        mean += value / count;
    for (const double value : leaveOneOut)
        squares += (value - mean) * (value - mean);
    return std::sqrt((count - 1) / count * squares);
}

std::optional<Uncertainty> uncertaintyOf(const ErrorSums &sums)
{
    const JackknifeUnits units = jackknifeUnits(sums);
    if (units.count < 2)
        return std::nullopt;
    Uncertainty result;
    result.unit = units.name;
    result.units = static_cast<std::int64_t>(units.count);
    result.leaveOneOut = leaveOneOut(sums, units, RankBy::Pooled);
    result.standardError = jackknifeError(result.leaveOneOut);
    const double half = studentQuantile(units.count - 1) * result.standardError;
    result.low = std::max(0.0, sums.relativeFrobenius() - half);
    result.high = sums.relativeFrobenius() + half;
    return result;
}

PairedDifference pairedDifference(const ErrorSums &a, const ErrorSums &b, RankBy by)
{
    PairedDifference result;
    const auto figure = [&](const ErrorSums &sums) {
        return by == RankBy::Rows ? rowFigures(sums).rms : sums.relativeFrobenius();
    };
    result.difference = figure(a) - figure(b);
    const JackknifeUnits units = jackknifeUnits(a);
    if (units.count < 2 || a.fileRows != b.fileRows) { // one row: nothing is tied, the numbers stand as they are
        result.low = result.high = result.difference;
        return result;
    }
    std::vector<double> difference = leaveOneOut(a, units, by);
    const std::vector<double> other = leaveOneOut(b, units, by);
    for (std::size_t j = 0; j < difference.size(); ++j)
        difference[j] -= other[j];
    result.standardError = jackknifeError(difference);
    const double half = studentQuantile(units.count - 1) * result.standardError;
    result.low = result.difference - half;
    result.high = result.difference + half;
    result.tied = result.low <= 0 && result.high >= 0;
    return result;
}

} // namespace planish
