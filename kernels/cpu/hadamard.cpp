#include "kernels/cpu/hadamard.h"

#include <cmath>

namespace planish::cpu {

namespace {

/// Two stages at once for strides of at least one vector; plain loops over contiguous memory vectorise.
void sylvester(double *values, std::size_t length)
{
    std::size_t h = 1;
    for (; h * 4 <= length; h *= 4) {
        for (std::size_t i = 0; i < length; i += 4 * h) {
            double *p0 = values + i, *p1 = p0 + h, *p2 = p1 + h, *p3 = p2 + h;
            for (std::size_t j = 0; j < h; ++j) {
                const double a = p0[j] + p1[j], b = p0[j] - p1[j], c = p2[j] + p3[j], d = p2[j] - p3[j];
                p0[j] = a + c;
                p1[j] = b + d;
                p2[j] = a - c;
                p3[j] = b - d;
            }
        }
    }
    for (; h < length; h *= 2) {
        for (std::size_t i = 0; i < length; i += 2 * h) {
            for (std::size_t j = i; j < i + h; ++j) {
                const double a = values[j], b = values[j + h];
                values[j] = a + b;
                values[j + h] = a - b;
            }
        }
    }
}

void mixByTable(std::span<double> block, const Matrix<std::int8_t> &table, bool transposed, std::vector<double> &scratch)
{
    const std::size_t m = table.rows(), length = block.size() / m;
    scratch.assign(block.begin(), block.end());
    for (std::size_t i = 0; i < m; ++i) {
        double *out = block.data() + i * length;
        std::fill_n(out, length, 0.0);
        for (std::size_t j = 0; j < m; ++j) {
            const double factor = transposed ? table(j, i) : table(i, j);
            const double *in = scratch.data() + j * length;
            for (std::size_t l = 0; l < length; ++l) {
                out[l] += factor * in[l];
            }
        }
    }
}

void applySigns(std::span<double> row, const std::vector<std::int8_t> &signs)
{
    for (std::size_t k = 0; k < signs.size(); ++k) {
        row[k] *= signs[k];
    }
}

} // namespace

void applyHadamard(std::span<double> row, const HadamardStep &step, std::vector<double> &scratch)
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
            sylvester(block.data() + i * length, length);
        }
        if (m > 1) {
            mixByTable(block, step.table, step.inverse, scratch);
        }
        for (double &v : block) {
            v /= root;
        }
    }
    if (step.inverse) {
        applySigns(row, step.signs);
    }
}

} // namespace planish::cpu
