#include "kernels/cpu/rotate.h"

#include <algorithm>

#include "kernels/cpu/hadamard.h"
#include "kernels/cpu/matmul.h"

namespace planish::cpu {

namespace {

class TileOperation {
public:
    TileOperation(MatrixView<double> tile, Side side) : m_tile(tile), m_side(side) {}

    void operator()(const ScaleStep &step)
    {
        for (std::size_t r = 0; r < m_tile.rows; ++r) {
            double *row = m_tile.row(r).data();
            const double *factor = step.divisor.data();
            if (m_side == Side::Activation) {
                for (std::size_t k = 0; k < m_tile.cols; ++k) {
                    row[k] /= factor[k];
                }
            } else {
                for (std::size_t k = 0; k < m_tile.cols; ++k) {
                    row[k] *= factor[k];
                }
            }
        }
    }
    void operator()(const PermuteStep &step)
    {
        for (std::size_t r = 0; r < m_tile.rows; ++r) {
            const auto row = m_tile.row(r);
            m_scratch.assign(row.begin(), row.end());
            for (std::size_t k = 0; k < row.size(); ++k) {
                row[k] = m_scratch[static_cast<std::size_t>(step.perm[k])];
            }
        }
    }
    void operator()(const HadamardStep &step)
    {
        for (std::size_t r = 0; r < m_tile.rows; ++r) {
            applyHadamard(m_tile.row(r), step, m_scratch);
        }
    }
    void operator()(const BlockDenseStep &step)
    {
        const std::size_t width = step.blocks.front().rows();
        m_scratch.resize(m_tile.rows * width);
        for (std::size_t b = 0; b < step.assignment.size(); ++b) {
            const auto index = static_cast<std::size_t>(step.assignment[b]);
            const MatrixD &p = m_side == Side::Activation ? step.blocks[index] : step.inverseTransposed[index];
            const MatrixView<double> part{m_tile.data + b * width, m_tile.rows, width, m_tile.stride};
            multiplyTile({part.data, part.rows, part.cols, part.stride}, p.view(), m_scratch.data());
            for (std::size_t r = 0; r < part.rows; ++r) {
                std::copy_n(m_scratch.data() + r * width, width, part.row(r).data());
            }
        }
    }

private:
    MatrixView<double> m_tile;
    Side m_side;
    std::vector<double> m_scratch;
};

} // namespace

void applySteps(MatrixView<double> tile, std::span<const OperatorStep> steps, Side side)
{
    TileOperation operation(tile, side);
    for (const OperatorStep &step : steps) {
        std::visit(operation, step);
    }
}

std::size_t rowsPerTile(std::span<const OperatorStep> steps)
{
    const bool multiplies =
        std::ranges::any_of(steps, [](const OperatorStep &s) { return std::holds_alternative<BlockDenseStep>(s); });
    return multiplies ? 128 : 8;
}

} // namespace planish::cpu
