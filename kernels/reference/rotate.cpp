#include "kernels/reference/rotate.h"

#include "kernels/reference/hadamard.h"

namespace planish::reference {

namespace {

struct RowOperation {
    std::span<double> row;
    Side side;

    void operator()(const ScaleStep &step) const
    {
        for (std::size_t k = 0; k < row.size(); ++k) {
            row[k] = side == Side::Activation ? row[k] / step.divisor[k] : row[k] * step.divisor[k];
        }
    }
    void operator()(const PermuteStep &step) const
    {
        const std::vector<double> old(row.begin(), row.end());
        for (std::size_t k = 0; k < row.size(); ++k) {
            row[k] = old[static_cast<std::size_t>(step.perm[k])];
        }
    }
    void operator()(const HadamardStep &step) const { applyHadamard(row, step); }
    void operator()(const BlockDenseStep &step) const
    {
        const std::size_t width = step.blocks.front().rows();
        std::vector<double> old(width);
        for (std::size_t b = 0; b < step.assignment.size(); ++b) {
            const auto index = static_cast<std::size_t>(step.assignment[b]);
            const MatrixD &p = side == Side::Activation ? step.blocks[index] : step.inverseTransposed[index];
            const auto part = row.subspan(b * width, width);
            std::copy(part.begin(), part.end(), old.begin());
            for (std::size_t j = 0; j < width; ++j) {
                double sum = 0.0;
                for (std::size_t i = 0; i < width; ++i) {
                    sum += old[i] * p(i, j);
                }
                part[j] = sum;
            }
        }
    }
};

} // namespace

void applyStep(std::span<double> row, const OperatorStep &step, Side side)
{
    std::visit(RowOperation{row, side}, step);
}

} // namespace planish::reference
