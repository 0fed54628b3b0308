// Runs one quantizer of one backend on a small matrix and brings everything back.
#pragma once

#include <QtTest>

#include "kernels/backend_list.h"

namespace planish::test {

struct QuantizedBack {
    Quantized result;
    MatrixD values;
};

/// A matrix of one or more rows from text-like lists.
inline MatrixD matrixOf(std::initializer_list<std::initializer_list<double>> rows)
{
    MatrixD out(rows.size(), rows.begin()->size());
    std::size_t r = 0;
    for (const auto &row : rows) {
        std::copy(row.begin(), row.end(), out.row(r++).begin());
    }
    return out;
}

inline std::shared_ptr<const Backend> backendNamed(std::string_view key, int threads = 0)
{
    auto backend = makeBackend(key, threads);
    return backend ? *backend : nullptr;
}

/// Fails the calling test by an empty result when the request is refused.
inline QuantizedBack quantizeOn(const Backend &backend, const MatrixD &x, QuantizeRequest request)
{
    request.wantCodes = true;
    const auto resident = backend.upload(x.view());
    auto quantized = backend.quantize(**resident, request);
    if (!quantized) {
        qWarning("quantize refused: %s", quantized.error().message.c_str());
        return {};
    }
    MatrixD values = *backend.download(*quantized->reconstructed);
    return {std::move(*quantized), std::move(values)};
}

inline std::vector<int> codesOf(const QuantizedBack &back)
{
    return {back.result.codes.values().begin(), back.result.codes.values().end()};
}

inline bool allNear(std::span<const double> a, std::span<const double> b, double tolerance)
{
    if (a.size() != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!(std::fabs(a[i] - b[i]) <= tolerance)) {
            qWarning("element %zu: %.17g, expected %.17g", i, a[i], b[i]);
            return false;
        }
    }
    return true;
}
inline bool allNear(std::span<const double> a, std::initializer_list<double> b, double tolerance)
{
    return allNear(a, std::span<const double>(b.begin(), b.size()), tolerance);
}

} // namespace planish::test
