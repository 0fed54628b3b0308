#include <cmath>

#include "core/measure/statistics.h"

namespace planish
{

void Moments::add(double x)
{
    const Moments one{1, x, 0.0, 0.0, 0.0};
    merge(one);
}

// diagonal.md 1.1, the pairwise update of (n, mean, M2, M3, M4).
void Moments::merge(const Moments &other)
{
    if (other.n == 0)
        return;
    if (n == 0) {
        *this = other;
        return;
    }
    const double a = static_cast<double>(n), b = static_cast<double>(other.n), total = a + b;
    const double d = other.mean - mean, d2 = d * d;
    const double fourth = m4 + other.m4 + d2 * d2 * a * b * (a * a - a * b + b * b) / (total * total * total) +
                          6.0 * d2 * (a * a * other.m2 + b * b * m2) / (total * total) +
                          4.0 * d * (a * other.m3 - b * m3) / total;
    const double third = m3 + other.m3 + d2 * d * a * b * (a - b) / (total * total) + 3.0 * d * (a * other.m2 - b * m2) / total;
    m2 += other.m2 + d2 * a * b / total;
    m3 = third;
    m4 = fourth;
    mean += d * b / total;
    n += other.n;
}

std::optional<double> Moments::kurtosis() const
{
    if (n == 0 || !(m2 > 0.0))
        return std::nullopt;
    const double value = m4 * static_cast<double>(n) / (m2 * m2);
    if (!std::isfinite(value))
        return std::nullopt;
    return value;
}

} // namespace planish
