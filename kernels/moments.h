// Central moments of one stream and their merge (diagonal.md 1.1), shared by the statistics kernels.
#pragma once

#include <cstdint>

namespace planish {

/// n values with mean and sums of (x - mean)^j.
struct CentralMoments {
    std::uint64_t n = 0;
    double mean = 0.0, m2 = 0.0, m3 = 0.0, m4 = 0.0;
};

/// Moments from sums of d^j, d = x - pivot; exact to rounding because the pivot is one of the values.
inline CentralMoments momentsAboutPivot(std::uint64_t n, double pivot, double s1, double s2, double s3, double s4)
{
    if (n == 0) {
        return {};
    }
    const double count = static_cast<double>(n), shift = s1 / count;
    CentralMoments moments{n, pivot + shift, 0.0, 0.0, 0.0};
    moments.m2 = s2 - shift * s1;
    moments.m3 = s3 - 3.0 * shift * s2 + 2.0 * shift * shift * s1;
    moments.m4 = s4 - 4.0 * shift * s3 + 6.0 * shift * shift * s2 - 3.0 * shift * shift * shift * s1;
    moments.m2 = moments.m2 > 0.0 ? moments.m2 : 0.0;
    moments.m4 = moments.m4 > 0.0 ? moments.m4 : 0.0;
    return moments;
}

inline CentralMoments merged(const CentralMoments &a, const CentralMoments &b)
{
    if (a.n == 0 || b.n == 0) {
        return a.n == 0 ? b : a;
    }
    const double na = static_cast<double>(a.n), nb = static_cast<double>(b.n), n = na + nb;
    const double d = b.mean - a.mean, d2 = d * d;
    CentralMoments out{a.n + b.n, a.mean + d * (nb / n), 0.0, 0.0, 0.0};
    out.m2 = a.m2 + b.m2 + d2 * na * nb / n;
    out.m3 = a.m3 + b.m3 + d2 * d * na * nb * (na - nb) / (n * n) + 3.0 * d * (na * b.m2 - nb * a.m2) / n;
    out.m4 = a.m4 + b.m4 + d2 * d2 * na * nb * (na * na - na * nb + nb * nb) / (n * n * n) +
             6.0 * d2 * (na * na * b.m2 + nb * nb * a.m2) / (n * n) + 4.0 * d * (na * b.m3 - nb * a.m3) / n;
    return out;
}

} // namespace planish
