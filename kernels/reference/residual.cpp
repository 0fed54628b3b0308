#include "kernels/reference/residual.h"

#include "kernels/error_tile.h"
#include "kernels/reference/matmul.h"

namespace planish::reference {

static constexpr std::size_t kTileRows = 256;

KernelResult<ResidualSums> residual(const ResidualOperands &op, TermDetail detail, std::stop_token stop)
{
    ResidualSums sums = emptySums(op.reference.rows, op.reference.cols, detail);
    const bool hasActivation = op.activationError.data != nullptr, hasWeight = op.weightError.data != nullptr;
    for (std::size_t begin = 0; begin < op.reference.rows; begin += kTileRows) {
        if (stop.stop_requested()) {
            return tl::make_unexpected(Status{StatusCode::Cancelled, "cancelled"});
        }
        const std::size_t count = std::min(kTileRows, op.reference.rows - begin);
        MatrixD activationOnly, weightOnly, cross;
        if (hasActivation) {
            activationOnly = multiplyTransposed(op.activationError.middleRows(begin, count), op.weight);
        }
        if (hasWeight) {
            const bool separate = detail == TermDetail::All && hasActivation;
            const ConstViewD factor = separate || !hasActivation ? op.activation : op.activationQuantized;
            weightOnly = multiplyTransposed(factor.middleRows(begin, count), op.weightError);
            if (separate) {
                cross = multiplyTransposed(op.activationError.middleRows(begin, count), op.weightError);
            }
        }
        const auto dataOf = [](const MatrixD &m) { return m.empty() ? nullptr : m.data(); };
        const ErrorTerms<double> terms{dataOf(activationOnly), dataOf(weightOnly), dataOf(cross), op.reference.cols};
        addTile(sumTile(terms, op.reference.middleRows(begin, count), begin, 0), begin, 0, sums);
    }
    return sums;
}

} // namespace planish::reference
