#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/residual.h"
#include "kernels/cpu/resident.h"
#include "kernels/cpu/rotate.h"
#include "kernels/cpu/self_test.h"
#include "kernels/operator_check.h"
#include "kernels/quantize_shares.h"
#include "kernels/residual_check.h"

namespace planish::cpu {

namespace {

ResidentPtr keep(Buffer<double> values)
{
    return std::make_shared<CpuMatrix>(std::move(values));
}

class CpuBackend final : public Backend {
public:
    explicit CpuBackend(int threads) : m_workers(threads) {}

    BackendInfo info() const override
    {
        std::call_once(m_described, [this] { m_info = describe(m_workers.threads()); });
        return m_info;
    }

    KernelResult<ResidentPtr> upload(ConstViewD matrix) const override
    {
        Buffer<double> copy(matrix.rows, matrix.cols);
        m_workers.forEach(matrix.rows, [&](std::size_t r) { std::ranges::copy(matrix.row(r), copy.row(r).begin()); });
        return keep(std::move(copy));
    }

    KernelResult<MatrixD> download(const Resident &matrix) const override
    {
        Buffer<double> scratch;
        const ConstViewD values = doublesOf(matrix, scratch);
        MatrixD copy(values.rows, values.cols);
        std::copy_n(values.data, values.rows * values.cols, copy.data());
        return copy;
    }

    KernelResult<ResidentPtr> transform(const Resident &matrix, std::span<const double> shift,
                                        std::span<const OperatorStep> steps, Side side) const override
    {
        if (auto ok = checkSteps(steps, matrix.cols(), shift); !ok) {
            return tl::make_unexpected(ok.error());
        }
        Buffer<double> scratch;
        const ConstViewD from = doublesOf(matrix, scratch);
        Buffer<double> result(from.rows, from.cols);
        const std::size_t height = rowsPerTile(steps);
        m_workers.forEach((from.rows + height - 1) / height, [&](std::size_t t) {
            const std::size_t begin = t * height, count = std::min(height, from.rows - begin);
            const MatrixView<double> tile = result.view().middleRows(begin, count);
            for (std::size_t r = 0; r < count; ++r) {
                const auto in = from.row(begin + r);
                const auto out = tile.row(r);
                if (shift.empty() || side == Side::Weight) {
                    std::ranges::copy(in, out.begin());
                } else {
                    std::ranges::transform(in, shift, out.begin(), [](double x, double c) { return x - c; });
                }
            }
            applySteps(tile, steps, side);
        });
        return keep(std::move(result));
    }

    KernelResult<Quantized> quantize(const Resident &matrix, const QuantizeRequest &request) const override
    {
        Buffer<double> scratch;
        const IndexLoop loop = [this](std::size_t count, const std::function<void(std::size_t)> &body) {
            m_workers.forEach(count, body);
        };
        auto arrays = quantizeShares<float>(doublesOf(matrix, scratch), request, loop);
        if (!arrays) {
            return tl::make_unexpected(arrays.error());
        }
        return Quantized{keep(std::move(arrays->reconstructed)),
                         std::make_shared<CpuMatrix>(std::move(arrays->error)),
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
        Buffer<double> left, right;
        return keep(multiplyTransposed(doublesOf(a, left), doublesOf(b, right), m_workers));
    }

    KernelResult<ResidualSums> residual(const Resident *activationError, const Resident &activation,
                                        const Resident &activationQuantized, const Resident *weightError, const Resident &weight,
                                        const Resident &reference, TermDetail detail, std::stop_token stop) const override
    {
        if (auto ok = checkResidual(activationError, activation, activationQuantized, weightError, weight, reference); !ok) {
            return tl::make_unexpected(ok.error());
        }
        Buffer<double> scratch;
        ResidualOperands operands;
        operands.reference = doublesOf(reference, scratch);
        if (activationError) {
            operands.activationError = floats(*activationError);
            operands.weight = floats(weight);
        }
        if (weightError) {
            operands.weightError = floats(*weightError);
            const bool needsQuantized = activationError && detail == TermDetail::ErrorOnly;
            (needsQuantized ? operands.activationQuantized : operands.activation) =
                floats(needsQuantized ? activationQuantized : activation);
        }
        return cpu::residual(operands, detail, m_workers, stop);
    }

private:
    ConstViewF floats(const Resident &matrix) const { return cpuMatrix(matrix).floats(m_workers); }

    Workers m_workers;
    mutable std::once_flag m_described; ///< the self tests behind the description run once
    mutable BackendInfo m_info;
};

} // namespace

BackendInfo describe(int threads)
{
    const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int used = threads > 0 ? std::min(threads, cores) : cores;
    const Int8SelfTest test = selfTestInt8Gemm();
    return {"cpu", "CPU, " + std::to_string(used) + " of " + std::to_string(cores) + " cores, " + instructionSet(), true,
            test.sentence +
                (rowsIgnoreTheirPlace() ? "" : "; a row's float error may change its last bits with its place in a tile")};
}

std::shared_ptr<const Backend> makeCpuBackend(int threads)
{
    return std::make_shared<CpuBackend>(threads);
}

} // namespace planish::cpu
