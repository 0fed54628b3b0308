// The one interface to numbers: residency, transforms, quantizers, products, error sums. Implementations: reference, cpu, cuda.
// All matrices are row-major with channels last. Functions are thread-safe; results are bitwise equal for any thread count.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "kernels/matrix_view.h"
#include "kernels/number_grid.h"
#include "kernels/operators.h"
#include "kernels/status.h"

namespace planish {

/// A matrix that lives where the backend computes. On the CPU a pointer; on a GPU device memory. Immutable.
class Resident {
public:
    virtual ~Resident() = default;
    virtual std::size_t rows() const = 0;
    virtual std::size_t cols() const = 0;
};
using ResidentPtr = std::shared_ptr<const Resident>;

struct BackendInfo {
    std::string key;         ///< cpu | cuda | reference
    std::string label;       ///< "CPU, 2 of 64 cores, AVX-512"
    bool usable = false;
    std::string reason;      ///< why not usable, or what it does instead
};

/// Columns or elements taken out of the quantizer (LLM.int8): kept exact in the result, left out of the step.
struct ExceptionMask {
    std::vector<std::uint8_t> columns;  ///< K flags shared by all rows; empty = none
    /// Optional per-row override: unit index of each row and K flags per unit (dynamic sets).
    std::vector<std::int32_t> rowUnit;
    std::vector<std::vector<std::uint8_t>> unitColumns;
    bool stepIgnoresElements = false;   ///< true: the step ignores only elements >= threshold (bitsandbytes)
    double threshold = 0.0;
    bool keepExact = true;              ///< false: columns enter the step as usual and are quantized (bitsandbytes weights)
};

struct QuantizeRequest {
    NumberGrid grid;
    const FixedRanges *ranges = nullptr;         ///< static or learned ranges, one per share; replaces the dynamic range
    const std::vector<double> *clampBound = nullptr; ///< one bound per share: values clamped to +-bound first (AWQ clip)
    const ExceptionMask *exceptions = nullptr;
    double tensorScaleMax = -1.0;                ///< nvfp4 static: A of calibration rows; < 0 = from the rows at hand
    bool wantCodes = false;
};

struct QuantizeCounts {
    std::size_t elements = 0;
    std::size_t zeroed = 0;       ///< x != 0 and xhat == 0
    std::size_t saturated = 0;    ///< rounded without limits lies outside the grid, or beyond a clamp bound
    double zeroedEnergy = 0.0;    ///< sum x^2 of zeroed elements
    double energy = 0.0;          ///< sum x^2
    double squaredError = 0.0;    ///< sum (xhat - x)^2
    std::size_t degenerateShares = 0;
    std::size_t scaleUnderflow = 0;
    std::size_t nearTies = 0;     ///< only with wantCodes: elements within 1e-6 of a rounding tie (cli.md, quantize)
};

struct Quantized {
    ResidentPtr reconstructed; ///< xhat [M,K]
    ResidentPtr error;         ///< xhat - x [M,K], exact element errors rounded to the product's width
    std::vector<double> steps; ///< effective scale of each share, share order row-major (rows x shares per row)
    std::vector<double> zeros; ///< zero points (asym), empty for sym
    Matrix<std::int16_t> codes; ///< if wanted: integer codes as stored; float formats (-1)^sign * code
    QuantizeCounts counts;
    double tensorScale = 0.0;  ///< nvfp4 g
};

/// Sums of one output error, mergeable; see core/measure/error_sums for meaning.
struct ResidualSums {
    std::vector<double> rowError, rowReference;        ///< [M] ||e_m||^2, ||y_m||^2
    std::vector<double> outputError, outputReference;  ///< [N]
    std::vector<double> rowActivationOnly, rowWeightOnly, rowCross; ///< [M] squares of the three terms
    std::vector<double> rowDot;       ///< [M] <yhat_m, y_m>
    std::vector<double> rowEstimate;  ///< [M] ||yhat_m||^2
    double maxAbs = 0.0;              ///< max |E|
    std::size_t maxRow = 0, maxOutput = 0;
};

/// Whether all three error terms are wanted or only ||E|| (searches).
enum class TermDetail { All, ErrorOnly };

class Backend {
public:
    virtual ~Backend() = default;
    virtual BackendInfo info() const = 0;

    virtual KernelResult<ResidentPtr> upload(ConstViewD matrix) const = 0;
    virtual KernelResult<MatrixD> download(const Resident &matrix) const = 0;

    /// (X - shift) steps  on Side::Activation, W steps^-T on Side::Weight, in double. `shift` may be empty.
    virtual KernelResult<ResidentPtr> transform(const Resident &matrix, std::span<const double> shift,
                                                std::span<const OperatorStep> steps, Side side) const = 0;

    virtual KernelResult<Quantized> quantize(const Resident &matrix, const QuantizeRequest &request) const = 0;

    /// A B^T in double: [M,K] x [N,K] -> [M,N]. For equivalence and Y.
    virtual KernelResult<ResidentPtr> product(const Resident &a, const Resident &b) const = 0;

    /// Error form: E = E_X W'^T + X_q E_W^T, from exact element errors; Y given as a double product. Null ex/ew = exact side.
    virtual KernelResult<ResidualSums> residual(const Resident *activationError, const Resident &activation,
                                                const Resident &activationQuantized, const Resident *weightError,
                                                const Resident &weight, const Resident &reference,
                                                TermDetail detail, std::stop_token stop) const = 0;
};

} // namespace planish
