#include "core/measure/error_sums.h"

#include <cmath>
#include <limits>

namespace planish
{

namespace
{

// Below this the plain loop is as accurate as further halving and much faster.
constexpr std::size_t kLeaf = 32;

} // namespace

double pairwiseSum(std::span<const double> values)
{
    if (values.size() <= kLeaf) {
        double sum = 0.0;
        for (double value : values)
            sum += value;
        return sum;
    }
    // The split depends on the length only, so the order of additions does too.
    const std::size_t half = values.size() / 2;
    return pairwiseSum(values.first(half)) + pairwiseSum(values.subspan(half));
}

double ErrorSums::error2() const
{
    return pairwiseSum(sums.rowError);
}

double ErrorSums::reference2() const
{
    return pairwiseSum(sums.rowReference);
}

double ErrorSums::relativeFrobenius() const
{
    const double reference = reference2(), error = error2();
    if (reference > 0.0)
        return std::sqrt(error / reference);
    return error > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
}

} // namespace planish
