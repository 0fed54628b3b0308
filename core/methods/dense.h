// The bridge to Eigen inside core/methods: one dense type and the two copies between it and MatrixD.
#pragma once

#include <algorithm>

#include <Eigen/Core>

#include "kernels/matrix_view.h"

namespace planish {

using Dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline Dense eigenMatrix(const MatrixD &m)
{
    return Eigen::Map<const Dense>(m.data(), static_cast<Eigen::Index>(m.rows()), static_cast<Eigen::Index>(m.cols()));
}

inline MatrixD planishMatrix(const Dense &m)
{
    MatrixD out(static_cast<std::size_t>(m.rows()), static_cast<std::size_t>(m.cols()));
    std::copy_n(m.data(), out.size(), out.data());
    return out;
}

} // namespace planish
