#include "core/transform/random_orthogonal.h"

#include <Eigen/QR>

namespace planish {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

MatrixD orthogonalFactor(const MatrixD &a)
{
    const auto order = static_cast<Eigen::Index>(a.rows());
    const Eigen::Map<const RowMajor> input(a.data(), order, order);
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(input);
    const Eigen::MatrixXd q = qr.householderQ();
    MatrixD result(a.rows(), a.cols());
    Eigen::Map<RowMajor> output(result.data(), order, order);
    for (Eigen::Index column = 0; column < order; ++column)
        output.col(column) = qr.matrixQR()(column, column) < 0.0 ? (-q.col(column)).eval() : q.col(column).eval();
    return result;
}

MatrixD randomOrthogonal(RandomStream &stream, std::size_t order)
{
    MatrixD gaussian(order, order);
    for (double &value : gaussian.values())
        value = stream.normal();
    return orthogonalFactor(gaussian);
}

} // namespace planish
