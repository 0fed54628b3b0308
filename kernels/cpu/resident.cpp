#include "kernels/cpu/resident.h"

#include <algorithm>

namespace planish::cpu {

ConstViewF CpuMatrix::floats(const Workers &workers) const
{
    std::call_once(m_once, [&] {
        if (!m_isDouble) {
            return;
        }
        m_floats = Buffer<float>(m_rows, m_cols);
        workers.forEach(m_rows, [&](std::size_t r) {
            const auto from = m_doubles.row(r);
            std::ranges::transform(from, m_floats.row(r).begin(), [](double v) { return static_cast<float>(v); });
        });
    });
    return std::as_const(m_floats).view();
}

const CpuMatrix &cpuMatrix(const Resident &matrix)
{
    return static_cast<const CpuMatrix &>(matrix);
}

ConstViewD doublesOf(const Resident &matrix, Buffer<double> &scratch)
{
    const CpuMatrix &own = cpuMatrix(matrix);
    if (own.isDouble()) {
        return own.doubles();
    }
    const ConstViewF floats = own.floats(Workers(1));
    scratch = Buffer<double>(floats.rows, floats.cols);
    std::copy(floats.data, floats.data + floats.rows * floats.cols, scratch.data());
    return std::as_const(scratch).view();
}

} // namespace planish::cpu
