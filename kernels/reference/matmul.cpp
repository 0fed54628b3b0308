#include "kernels/reference/matmul.h"

#include <Eigen/Core>

namespace planish::reference {

MatrixD multiplyTransposed(ConstViewD a, ConstViewD b)
{
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using View = Eigen::Map<const RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;
    const auto mapOf = [](ConstViewD m) {
        return View(m.data, static_cast<Eigen::Index>(m.rows), static_cast<Eigen::Index>(m.cols),
                    Eigen::OuterStride<>(static_cast<Eigen::Index>(m.stride)));
    };
    MatrixD product(a.rows, b.rows);
    if (!product.empty() && a.cols > 0) {
        Eigen::Map<RowMajor>(product.data(), static_cast<Eigen::Index>(a.rows), static_cast<Eigen::Index>(b.rows)).noalias() =
            mapOf(a) * mapOf(b).transpose();
    }
    return product;
}

} // namespace planish::reference
