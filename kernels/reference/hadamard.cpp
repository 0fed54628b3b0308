#include "kernels/reference/hadamard.h"

#include <cmath>

namespace planish::reference {

static void sylvester(std::span<double> values)
{
    for (std::size_t h = 1; h < values.size(); h *= 2) {
        for (std::size_t i = 0; i < values.size(); i += 2 * h) {
            for (std::size_t j = i; j < i + h; ++j) {
                const double a = values[j], b = values[j + h];
                values[j] = a + b;
                values[j + h] = a - b;
            }
        }
    }
}

static void mixByTable(std::span<double> block, const Matrix<std::int8_t> &table, bool transposed)
{
    const std::size_t m = table.rows(), length = block.size() / m;
    std::vector<double> column(m);
    for (std::size_t l = 0; l < length; ++l) {
        for (std::size_t i = 0; i < m; ++i) {
            column[i] = block[i * length + l];
        }
        for (std::size_t i = 0; i < m; ++i) {
            double sum = 0.0;
            for (std::size_t j = 0; j < m; ++j) {
                sum += (transposed ? table(j, i) : table(i, j)) * column[j];
            }
            block[i * length + l] = sum;
        }
    }
}

static void applySigns(std::span<double> row, const std::vector<std::int8_t> &signs)
{
    for (std::size_t k = 0; k < signs.size(); ++k) {
        row[k] *= signs[k];
    }
}

void applyHadamard(std::span<double> row, const HadamardStep &step)
{
    const std::size_t m = step.table.empty() ? 1 : step.table.rows();
    // Divided, not multiplied by the reciprocal: weights on a coarse grid give exact rounding ties, and the last bit decides them.
    const double root = std::sqrt(static_cast<double>(step.block));
    if (!step.inverse) {
        applySigns(row, step.signs);
    }
    for (std::size_t begin = 0; begin < row.size(); begin += step.block) {
        const auto block = row.subspan(begin, step.block);
        const std::size_t length = step.block / m;
        for (std::size_t i = 0; i < m; ++i) {
            sylvester(block.subspan(i * length, length));
        }
        if (m > 1) {
            mixByTable(block, step.table, step.inverse);
        }
        for (double &v : block) {
            v /= root;
        }
    }
    if (step.inverse) {
        applySigns(row, step.signs);
    }
}

} // namespace planish::reference
