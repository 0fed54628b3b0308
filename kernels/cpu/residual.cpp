#include "kernels/cpu/residual.h"

#include <algorithm>

#include "kernels/cpu/onednn_shim.h"
#include "kernels/error_tile.h"

namespace planish::cpu {

namespace {

/// Buffers of one thread: three product tiles, padded operand rows, scratch of the library.
struct TileBuffers {
    std::vector<float> terms[3];
    std::vector<float> padded;
    GemmScratch scratch;
};

class TileErrors {
public:
    TileErrors(const ResidualOperands &operands, TermDetail detail)
        : m_op(operands), m_gemm(std::max(operands.weight.cols, operands.activation.cols)),
          m_hasActivation(operands.activationError.data), m_hasWeight(operands.weightError.data),
          m_separate(detail == TermDetail::All && m_hasActivation && m_hasWeight)
    {
    }

    TileSums sumsOf(std::size_t row, std::size_t output, TileBuffers &buffers) const
    {
        const std::size_t rows = std::min(kGemmTileRows, m_op.reference.rows - row);
        const std::size_t outputs = std::min(kGemmTileOutputs, m_op.reference.cols - output);
        ErrorTerms<float> terms;
        terms.stride = outputs;
        if (m_hasActivation) {
            terms.activationOnly = product(m_op.activationError, m_op.weight, row, rows, output, outputs, 0, buffers);
        }
        if (m_hasWeight) {
            const ConstViewF factor = m_separate || !m_hasActivation ? m_op.activation : m_op.activationQuantized;
            terms.weightOnly = product(factor, m_op.weightError, row, rows, output, outputs, 1, buffers);
        }
        if (m_separate) {
            terms.cross = product(m_op.activationError, m_op.weightError, row, rows, output, outputs, 2, buffers);
        }
        const ConstViewD y{m_op.reference.data + row * m_op.reference.stride + output, rows, outputs, m_op.reference.stride};
        return sumTile(terms, y, row, output);
    }

private:
    const float *product(ConstViewF a, ConstViewF b, std::size_t row, std::size_t rows, std::size_t output, std::size_t outputs,
                         std::size_t slot, TileBuffers &buffers) const
    {
        auto &target = buffers.terms[slot];
        target.resize(kGemmTileRows * kGemmTileOutputs);
        const float *first = a.data + row * a.stride;
        if (rows < kGemmTileRows) {
            // Short tiles are padded, so that a row has the same bits whatever rows surround it.
            buffers.padded.assign(kGemmTileRows * a.cols, 0.0f);
            std::copy_n(first, rows * a.cols, buffers.padded.data());
            first = buffers.padded.data();
        }
        m_gemm.multiply(first, b.data + output * b.stride, outputs, target.data(), buffers.scratch);
        return target.data();
    }

    const ResidualOperands &m_op;
    TileGemm m_gemm;
    bool m_hasActivation, m_hasWeight, m_separate;
};

} // namespace

KernelResult<ResidualSums> residual(const ResidualOperands &op, TermDetail detail, const Workers &workers, std::stop_token stop)
{
    const std::size_t rowTiles = (op.reference.rows + kGemmTileRows - 1) / kGemmTileRows;
    const std::size_t outputTiles = (op.reference.cols + kGemmTileOutputs - 1) / kGemmTileOutputs;
    const TileErrors errors(op, detail);
    std::vector<TileSums> tiles(rowTiles * outputTiles);
    workers.forEach(tiles.size(), [&](std::size_t t) {
        thread_local TileBuffers buffers;
        if (!stop.stop_requested()) {
            tiles[t] = errors.sumsOf(t / outputTiles * kGemmTileRows, t % outputTiles * kGemmTileOutputs, buffers);
        }
    });
    if (stop.stop_requested()) {
        return tl::make_unexpected(Status{StatusCode::Cancelled, "cancelled"});
    }
    ResidualSums sums = emptySums(op.reference.rows, op.reference.cols, detail);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
        addTile(tiles[t], t / outputTiles * kGemmTileRows, t % outputTiles * kGemmTileOutputs, sums);
    }
    return sums;
}

} // namespace planish::cpu
