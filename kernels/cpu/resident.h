// A matrix of the cpu backend: doubles, floats, or doubles with a float copy made on first use by a product.
#pragma once

#include <mutex>

#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/cpu/workers.h"

namespace planish::cpu {

class CpuMatrix final : public Resident {
public:
    explicit CpuMatrix(Buffer<double> values) : m_rows(values.rows()), m_cols(values.cols()), m_doubles(std::move(values)) {}
    explicit CpuMatrix(Buffer<float> values)
        : m_rows(values.rows()), m_cols(values.cols()), m_isDouble(false), m_floats(std::move(values))
    {
    }
    std::size_t rows() const override { return m_rows; }
    std::size_t cols() const override { return m_cols; }

    bool isDouble() const { return m_isDouble; }
    ConstViewD doubles() const { return m_doubles.view(); } ///< only when isDouble()
    ConstViewF floats(const Workers &workers) const;        ///< rounded once, kept

private:
    std::size_t m_rows, m_cols;
    bool m_isDouble = true;
    Buffer<double> m_doubles;
    mutable std::once_flag m_once;
    mutable Buffer<float> m_floats;
};

const CpuMatrix &cpuMatrix(const Resident &matrix);

/// Doubles of a matrix: its own, or `scratch` filled from floats.
ConstViewD doublesOf(const Resident &matrix, Buffer<double> &scratch);

} // namespace planish::cpu
