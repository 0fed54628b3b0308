#include "kernels/reference/resident.h"

#include <algorithm>

namespace planish::reference {

MatrixD copyOf(ConstViewD matrix)
{
    MatrixD copy(matrix.rows, matrix.cols);
    for (std::size_t r = 0; r < matrix.rows; ++r) {
        std::ranges::copy(matrix.row(r), copy.row(r).begin());
    }
    return copy;
}

const MatrixD &valuesOf(const Resident &matrix)
{
    return static_cast<const DoubleMatrix &>(matrix).values();
}

} // namespace planish::reference
