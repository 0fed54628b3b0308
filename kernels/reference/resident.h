// A matrix of the reference backend: doubles, always.
#pragma once

#include "kernels/backend.h"

namespace planish::reference {

class DoubleMatrix final : public Resident {
public:
    explicit DoubleMatrix(MatrixD values) : m_values(std::move(values)) {}
    std::size_t rows() const override { return m_values.rows(); }
    std::size_t cols() const override { return m_values.cols(); }
    const MatrixD &values() const { return m_values; }

private:
    MatrixD m_values;
};

MatrixD copyOf(ConstViewD matrix);

/// The doubles behind a matrix that this backend made.
const MatrixD &valuesOf(const Resident &matrix);

} // namespace planish::reference
