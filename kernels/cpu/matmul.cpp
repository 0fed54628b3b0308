#include "kernels/cpu/matmul.h"

#include <algorithm>

#include <Eigen/Core>

namespace planish::cpu {

namespace {

constexpr std::size_t kTileRows = 256, kTileOutputs = 512;

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;
using Target = Eigen::Map<RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;

View mapOf(ConstViewD m)
{
    return View(m.data, static_cast<Eigen::Index>(m.rows), static_cast<Eigen::Index>(m.cols),
                Eigen::OuterStride<>(static_cast<Eigen::Index>(m.stride)));
}

} // namespace

Buffer<double> multiplyTransposed(ConstViewD a, ConstViewD b, const Workers &workers)
{
    Buffer<double> product(a.rows, b.rows);
    if (product.size() == 0 || a.cols == 0) {
        std::fill_n(product.data(), product.size(), 0.0);
        return product;
    }
    const std::size_t rowTiles = (a.rows + kTileRows - 1) / kTileRows;
    const std::size_t outputTiles = (b.rows + kTileOutputs - 1) / kTileOutputs;
    workers.forEach(rowTiles * outputTiles, [&](std::size_t tile) {
        const std::size_t row = tile / outputTiles * kTileRows, output = tile % outputTiles * kTileOutputs;
        const std::size_t rows = std::min(kTileRows, a.rows - row), outputs = std::min(kTileOutputs, b.rows - output);
        Target target(product.data() + row * b.rows + output, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(outputs),
                      Eigen::OuterStride<>(static_cast<Eigen::Index>(b.rows)));
        target.noalias() = mapOf(a.middleRows(row, rows)) * mapOf(b.middleRows(output, outputs)).transpose();
    });
    return product;
}

void multiplyTile(ConstViewD a, ConstViewD b, double *out)
{
    Target target(out, static_cast<Eigen::Index>(a.rows), static_cast<Eigen::Index>(b.cols),
                  Eigen::OuterStride<>(static_cast<Eigen::Index>(b.cols)));
    target.noalias() = mapOf(a) * mapOf(b);
}

} // namespace planish::cpu
