#include "kernels/quantize_shares.h"

#include <cstdio>

#include "kernels/share_codes.h"
#include "kernels/share_layout.h"

namespace planish {

namespace {

constexpr std::size_t kRowsPerTask = 8;

/// Finds steps. Holds views of one call; every function may run on several threads at once.
class StepFinder {
public:
    StepFinder(ConstViewD matrix, const QuantizeRequest &request, const ShareLayout &layout)
        : m_matrix(matrix), m_request(request), m_grid(request.grid), m_codes(codeGridOf(request.grid)), m_layout(layout)
    {
    }

    const CodeGrid &codes() const { return m_codes; }
    double bound(std::size_t share) const { return m_request.clampBound ? (*m_request.clampBound)[share] : -1.0; }

    /// Flags of the elements of a row that stay exact, or null.
    const std::uint8_t *exactFlags(std::size_t row) const
    {
        const ExceptionMask *mask = m_request.exceptions;
        if (!mask || !mask->keepExact) {
            return nullptr;
        }
        if (row < mask->rowUnit.size() && mask->rowUnit[row] >= 0) {
            const auto &columns = mask->unitColumns[static_cast<std::size_t>(mask->rowUnit[row])];
            return columns.empty() ? nullptr : columns.data();
        }
        return mask->columns.empty() ? nullptr : mask->columns.data();
    }

    /// Appends the elements [begin, end) of a row that count for the step.
    void collect(std::size_t row, std::size_t begin, std::size_t end, double bound, std::vector<double> &into) const
    {
        const auto values = m_matrix.row(row);
        const ExceptionMask *mask = m_request.exceptions;
        const bool byElement = mask && mask->keepExact && mask->stepIgnoresElements;
        const std::uint8_t *flags = byElement ? nullptr : exactFlags(row);
        for (std::size_t k = begin; k < end; ++k) {
            const double x = values[k];
            if ((flags && flags[k]) || (byElement && std::fabs(x) >= mask->threshold)) {
                continue;
            }
            into.push_back(codedInput(m_codes, x, bound));
        }
        if (m_grid.tail == TailRule::Pad && m_layout.sharing == Sharing::Group && end - begin < m_layout.width) {
            into.resize(into.size() + m_layout.width - (end - begin), 0.0);
        }
    }

    bool needsCollecting(std::size_t row, std::size_t begin, std::size_t end, double bound) const
    {
        const bool padded = m_grid.tail == TailRule::Pad && m_layout.sharing == Sharing::Group && end - begin < m_layout.width;
        const bool ignoring =
            m_request.exceptions && m_request.exceptions->keepExact && m_request.exceptions->stepIgnoresElements;
        return padded || ignoring || bound >= 0.0 || m_codes.castsInput || exactFlags(row);
    }

    ShareStep ofValues(std::span<const double> values, std::size_t share, double tensorScale) const
    {
        if (isBlockFormat(m_grid.format)) {
            const Range range = rangeOf(values);
            const double largest = std::max(std::fabs(range.lo), std::fabs(range.hi));
            return m_grid.format == NumberFormat::NvFp4 ? chooseNvBlock(m_grid, values, largest, tensorScale)
                                                        : stepOfMxBlock(m_grid, largest);
        }
        if (m_request.ranges) {
            return stepOfRange(m_grid, (*m_request.ranges)[share]);
        }
        return stepOfRange(m_grid, clippedRange(m_grid, values, rangeOf(values)));
    }

    ShareStep ofRun(std::size_t row, std::size_t run, double tensorScale, std::vector<double> &scratch) const
    {
        const std::size_t begin = m_layout.runBegin(run), end = m_layout.runEnd(run), share = m_layout.shareOf(row, run);
        if (!needsCollecting(row, begin, end, bound(share))) {
            return ofValues(m_matrix.row(row).subspan(begin, end - begin), share, tensorScale);
        }
        scratch.clear();
        collect(row, begin, end, bound(share), scratch);
        return ofValues(scratch, share, tensorScale);
    }

    ShareStep ofChannel(std::size_t channel, std::vector<double> &scratch) const
    {
        scratch.clear();
        if (!m_request.ranges) {
            for (std::size_t r = 0; r < m_layout.rows; ++r) {
                collect(r, channel, channel + 1, bound(channel), scratch);
            }
        }
        return ofValues(scratch, channel, 0.0);
    }

    ShareStep ofTensor(const IndexLoop &loop) const
    {
        const bool wantsValues = m_grid.clip.kind == ClipKind::Mse || m_grid.clip.kind == ClipKind::Percentile;
        if (m_request.ranges || !wantsValues) {
            const Range range = m_request.ranges ? m_request.ranges->front() : wholeRange(loop);
            return stepOfRange(m_grid, m_request.ranges ? range : clippedRange(m_grid, {&range.lo, 1}, range));
        }
        std::vector<double> values;
        values.reserve(m_layout.rows * m_layout.cols);
        for (std::size_t r = 0; r < m_layout.rows; ++r) {
            collect(r, 0, m_layout.cols, bound(0), values);
        }
        return ofValues(values, 0, 0.0);
    }

    /// Range of everything that counts for steps.
    Range wholeRange(const IndexLoop &loop) const
    {
        std::vector<Range> ranges(m_layout.rows);
        std::vector<std::uint8_t> filled(m_layout.rows);
        loop(m_layout.rows, [&](std::size_t r) {
            std::vector<double> scratch;
            const double limit = m_layout.sharing == Sharing::Tensor ? bound(0) : -1.0;
            std::span<const double> values = m_matrix.row(r);
            if (needsCollecting(r, 0, m_layout.cols, limit)) {
                collect(r, 0, m_layout.cols, limit, scratch);
                values = scratch;
            }
            ranges[r] = rangeOf(values);
            filled[r] = values.empty() ? 0 : 1;
        });
        Range whole;
        bool first = true;
        for (std::size_t r = 0; r < ranges.size(); ++r) {
            if (!filled[r]) {
                continue;
            }
            whole = first ? ranges[r] : Range{std::min(whole.lo, ranges[r].lo), std::max(whole.hi, ranges[r].hi)};
            first = false;
        }
        return whole;
    }

private:
    ConstViewD m_matrix;
    const QuantizeRequest &m_request;
    const NumberGrid &m_grid;
    CodeGrid m_codes;
    ShareLayout m_layout;
};

std::vector<ShareStep> sharedSteps(const StepFinder &finder, const ShareLayout &layout, const IndexLoop &loop)
{
    std::vector<ShareStep> steps(layout.shares());
    if (layout.sharing == Sharing::Tensor) {
        steps[0] = finder.ofTensor(loop);
    } else {
        loop(layout.cols, [&](std::size_t k) {
            std::vector<double> scratch;
            steps[k] = finder.ofChannel(k, scratch);
        });
    }
    return steps;
}

tl::unexpected<Status> unrepresentable(std::size_t share, const ShareStep &step)
{
    char text[160];
    std::snprintf(text, sizeof text, "unrepresentable scale %.9g of share %zu; a normal finite number was expected", step.step,
                  share);
    return tl::make_unexpected(Status{StatusCode::Unsupported, text});
}

template <class ErrorType> QuantizedArrays<ErrorType> emptyArrays(ConstViewD matrix, const QuantizeRequest &request)
{
    QuantizedArrays<ErrorType> out;
    out.reconstructed = Buffer<double>(matrix.rows, matrix.cols);
    out.error = Buffer<ErrorType>(matrix.rows, matrix.cols);
    if (request.wantCodes) {
        out.codes = Matrix<std::int16_t>(matrix.rows, matrix.cols);
    }
    return out;
}

/// Steps and zeros as reported; the first step that is no number is the error.
template <class ErrorType>
KernelResult<void> reportSteps(const NumberGrid &grid, const std::vector<ShareStep> &steps, QuantizedArrays<ErrorType> &out)
{
    const bool hasZeros = isInteger(grid.format) && isAsymmetric(grid.dialect);
    out.steps.reserve(steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
        if (!steps[s].representable) {
            return unrepresentable(s, steps[s]);
        }
        out.steps.push_back(steps[s].scale);
        out.counts.degenerateShares += steps[s].degenerate ? 1 : 0;
        out.counts.scaleUnderflow += steps[s].underflow ? 1 : 0;
        if (hasZeros) {
            out.zeros.push_back(steps[s].zero);
        }
    }
    return {};
}

template <class ErrorType>
QuantizedArrays<ErrorType> exactCopy(ConstViewD matrix, const QuantizeRequest &request, const IndexLoop &loop)
{
    auto out = emptyArrays<ErrorType>(matrix, request);
    std::vector<double> energies(matrix.rows);
    loop(matrix.rows, [&](std::size_t r) {
        std::ranges::copy(matrix.row(r), out.reconstructed.row(r).begin());
        std::ranges::fill(out.error.row(r), ErrorType(0));
        for (const double x : matrix.row(r)) {
            energies[r] += x * x;
        }
    });
    for (const double energy : energies) {
        out.counts.energy += energy;
    }
    out.counts.elements = matrix.rows * matrix.cols;
    return out;
}

/// Codes one row; steps of independent rows are found on the way.
template <class ErrorType>
void quantizeRow(const StepFinder &finder, const QuantizeRequest &request, const ShareLayout &layout, ConstViewD matrix,
                 std::size_t row, std::vector<ShareStep> &steps, QuantizedArrays<ErrorType> &out, QuantizeCounts &counts,
                 std::vector<double> &scratch)
{
    const std::uint8_t *flags = finder.exactFlags(row);
    for (std::size_t run = 0; run < layout.perRow; ++run) {
        const std::size_t begin = layout.runBegin(run), end = layout.runEnd(run), share = layout.shareOf(row, run);
        if (layout.rowsAreIndependent()) {
            steps[share] = finder.ofRun(row, run, out.tensorScale, scratch);
        }
        const ShareRun elements{matrix.row(row).data() + begin, end - begin, flags ? flags + begin : nullptr,
                                finder.bound(share)};
        CodedRun<ErrorType> coded{out.reconstructed.row(row).data() + begin, out.error.row(row).data() + begin, nullptr};
        if (request.wantCodes) {
            coded.codes = out.codes.row(row).data() + begin;
        }
        if (steps[share].representable) {
            codeRun(request.grid, finder.codes(), steps[share], elements, coded, counts);
        }
    }
}

} // namespace

template <class ErrorType>
KernelResult<QuantizedArrays<ErrorType>> quantizeShares(ConstViewD matrix, const QuantizeRequest &request, const IndexLoop &loop)
{
    if (request.grid.format == NumberFormat::None) {
        return exactCopy<ErrorType>(matrix, request, loop);
    }
    const auto layout = layoutOf(request.grid, matrix.rows, matrix.cols);
    if (!layout) {
        return tl::make_unexpected(layout.error());
    }
    if (auto ok = checkRequest(request, *layout); !ok) {
        return tl::make_unexpected(ok.error());
    }
    const StepFinder finder(matrix, request, *layout);
    auto out = emptyArrays<ErrorType>(matrix, request);
    if (request.grid.format == NumberFormat::NvFp4) {
        const Range whole = request.tensorScaleMax >= 0.0 ? Range{0.0, request.tensorScaleMax} : finder.wholeRange(loop);
        out.tensorScale = nvfp4TensorScale(request.grid, std::max(std::fabs(whole.lo), std::fabs(whole.hi)));
    }
    auto steps = layout->rowsAreIndependent() ? std::vector<ShareStep>(layout->shares()) : sharedSteps(finder, *layout, loop);
    std::vector<QuantizeCounts> rowCounts(matrix.rows);
    loop((matrix.rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
        std::vector<double> scratch;
        const std::size_t end = std::min(matrix.rows, (task + 1) * kRowsPerTask);
        for (std::size_t r = task * kRowsPerTask; r < end; ++r) {
            quantizeRow(finder, request, *layout, matrix, r, steps, out, rowCounts[r], scratch);
        }
    });
    for (const QuantizeCounts &counts : rowCounts) {
        addCounts(out.counts, counts);
    }
    if (auto ok = reportSteps(request.grid, steps, out); !ok) {
        return tl::make_unexpected(ok.error());
    }
    return out;
}

template KernelResult<QuantizedArrays<float>> quantizeShares<float>(ConstViewD, const QuantizeRequest &, const IndexLoop &);
template KernelResult<QuantizedArrays<double>> quantizeShares<double>(ConstViewD, const QuantizeRequest &, const IndexLoop &);

} // namespace planish
