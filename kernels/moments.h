// Central moments of one stream and their merge (diagonal.md 1.1), shared by the statistics kernels.
#pragma once

#include <algorithm>

namespace planish {

/// n values with mean and sums of (x - mean)^j. The count is a double: these loops run over channels and must vectorise.
struct CentralMoments {
    double n = 0.0, mean = 0.0, m2 = 0.0, m3 = 0.0, m4 = 0.0;
};

/// Moments from sums of d^j, d = x - pivot; accurate because the pivot is one of the values.
inline CentralMoments momentsAboutPivot(double n, double pivot, double s1, double s2, double s3, double s4)
{
    const double shift = s1 / std::max(n, 1.0), shift2 = shift * shift;
    return {n, pivot + shift, std::max(s2 - shift * s1, 0.0), s3 - 3.0 * shift * s2 + 2.0 * shift2 * s1,
            std::max(s4 - 4.0 * shift * s3 + 6.0 * shift2 * s2 - 3.0 * shift2 * shift * s1, 0.0)};
}

/// Branch-free: an empty side adds exact zeros.
inline CentralMoments merged(const CentralMoments &a, const CentralMoments &b)
{
    const double n = a.n + b.n, inverse = 1.0 / std::max(n, 1.0);
    const double fa = a.n * inverse, fb = b.n * inverse;
    const double d = b.mean - a.mean, d2 = d * d, product = a.n * fb; // na nb / n
    return {n, a.mean + d * fb, a.m2 + b.m2 + d2 * product,
            a.m3 + b.m3 + d2 * d * product * (fa - fb) + 3.0 * d * (fa * b.m2 - fb * a.m2),
            a.m4 + b.m4 + d2 * d2 * product * (fa * fa - fa * fb + fb * fb) + 6.0 * d2 * (fa * fa * b.m2 + fb * fb * a.m2) +
                4.0 * d * (fa * b.m3 - fb * a.m3)};
}

} // namespace planish
