#include "kernels/reference/reference_backend.h"

#include "kernels/operator_check.h"
#include "kernels/quantize_shares.h"
#include "kernels/reference/matmul.h"
#include "kernels/reference/residual.h"
#include "kernels/reference/resident.h"
#include "kernels/reference/rotate.h"
#include "kernels/residual_check.h"

namespace planish::reference {

namespace {

ResidentPtr keep(MatrixD values)
{
    return std::make_shared<DoubleMatrix>(std::move(values));
}

class ReferenceBackend final : public Backend {
public:
    BackendInfo info() const override { return describe(); }

    KernelResult<ResidentPtr> upload(ConstViewD matrix) const override { return keep(copyOf(matrix)); }

    KernelResult<MatrixD> download(const Resident &matrix) const override { return valuesOf(matrix); }

    KernelResult<ResidentPtr> transform(const Resident &matrix, std::span<const double> shift,
                                        std::span<const OperatorStep> steps, Side side) const override
    {
        if (auto ok = checkSteps(steps, matrix.cols(), shift); !ok) {
            return tl::make_unexpected(ok.error());
        }
        MatrixD result = valuesOf(matrix);
        for (std::size_t r = 0; r < result.rows(); ++r) {
            for (std::size_t k = 0; k < shift.size() && side == Side::Activation; ++k) {
                result(r, k) -= shift[k];
            }
            for (const OperatorStep &step : steps) {
                applyStep(result.row(r), step, side);
            }
        }
        return keep(std::move(result));
    }

    KernelResult<Quantized> quantize(const Resident &matrix, const QuantizeRequest &request) const override
    {
        const IndexLoop inOrder = [](std::size_t count, const std::function<void(std::size_t)> &body) {
            for (std::size_t i = 0; i < count; ++i) {
                body(i);
            }
        };
        auto arrays = quantizeShares<double>(valuesOf(matrix).view(), request, inOrder);
        if (!arrays) {
            return tl::make_unexpected(arrays.error());
        }
        return Quantized{keep(copyOf(std::as_const(arrays->reconstructed).view())),
                         keep(copyOf(std::as_const(arrays->error).view())),
                         std::move(arrays->steps),
                         std::move(arrays->zeros),
                         std::move(arrays->codes),
                         arrays->counts,
                         arrays->tensorScale};
    }

    KernelResult<ResidentPtr> product(const Resident &a, const Resident &b) const override
    {
        if (a.cols() != b.cols()) {
            return tl::make_unexpected(Status{StatusCode::ShapeMismatch, std::to_string(a.cols()) + " channels meet " +
                                                                             std::to_string(b.cols()) + " in a product"});
        }
        return keep(multiplyTransposed(valuesOf(a).view(), valuesOf(b).view()));
    }

    KernelResult<ResidualSums> residual(const Resident *activationError, const Resident &activation,
                                        const Resident &activationQuantized, const Resident *weightError, const Resident &weight,
                                        const Resident &reference, TermDetail detail, std::stop_token stop) const override
    {
        if (auto ok = checkResidual(activationError, activation, activationQuantized, weightError, weight, reference); !ok) {
            return tl::make_unexpected(ok.error());
        }
        const auto viewOf = [](const Resident *matrix) { return matrix ? valuesOf(*matrix).view() : ConstViewD{}; };
        return planish::reference::residual({viewOf(activationError), viewOf(&activation), viewOf(&activationQuantized),
                                             viewOf(weightError), viewOf(&weight), viewOf(&reference)},
                                            detail, stop);
    }
};

} // namespace

BackendInfo describe()
{
    return {"reference", "Reference, double precision, 1 core", true, "slow, for comparison"};
}

std::shared_ptr<const Backend> makeReferenceBackend()
{
    return std::make_shared<ReferenceBackend>();
}

} // namespace planish::reference
