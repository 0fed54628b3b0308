// The verb `quantize`: one tensor of a file through one spec, so that every format can be checked from outside. cli.md "quantize".
#include <cmath>

#include "core/io/checkpoint.h"
#include "core/quant/clip_rule.h"
#include "core/run/engine.h"

namespace planish {

namespace {

struct TensorRows {
    MatrixD values;
    std::optional<MatrixD> calibration;
    std::int64_t begin = 0, end = 0;
};

Expected<std::pair<std::int64_t, std::int64_t>> checkedRange(const std::optional<RowRange> &asked, std::int64_t rows,
                                                             const std::string &subject)
{
    const RowRange range = asked.value_or(RowRange{0, rows});
    if (range.first < 0 || range.second > rows || range.first >= range.second)
        return usageError(subject, "rows " + std::to_string(range.first) + ":" + std::to_string(range.second) + " are not in the tensor",
                          "a range inside 0:" + std::to_string(rows));
    return range;
}

MatrixD middleRows(const MatrixD &all, std::int64_t begin, std::int64_t end)
{
    MatrixD part(std::size_t(end - begin), all.cols());
    std::copy_n(all.data() + std::size_t(begin) * all.cols(), part.size(), part.data());
    return part;
}

Expected<TensorRows> slice(const MatrixD &all, const QuantizeVerbRequest &request, const std::string &subject)
{
    auto range = checkedRange(request.rows, std::int64_t(all.rows()), subject);
    if (!range)
        return tl::make_unexpected(range.error());
    TensorRows rows{middleRows(all, range->first, range->second), {}, range->first, range->second};
    if (request.calibrationRows) {
        auto fit = checkedRange(request.calibrationRows, std::int64_t(all.rows()), subject);
        if (!fit)
            return tl::make_unexpected(fit.error());
        rows.calibration = middleRows(all, fit->first, fit->second);
    }
    return rows;
}

/// The tensor by its path in a dump (edges, weights, norms) or by its name in a checkpoint.
Expected<MatrixD> readNamed(const std::string &file, const std::string &tensor, const OpenOptions &open)
{
    auto dump = openDump(file, open);
    if (dump) {
        const DumpInfo &info = (*dump)->info();
        for (const DumpEdge &edge : info.edges) {
            if (edge.path == tensor || edge.id.value == tensor) {
                std::vector<std::int64_t> rows(edge.rows);
                for (std::size_t i = 0; i < rows.size(); ++i)
                    rows[i] = std::int64_t(i);
                return (*dump)->readRows(edge, rows);
            }
        }
        for (const TensorEntry &entry : info.weights) {
            if (entry.path == tensor || entry.name.value == tensor)
                return (*dump)->readTensor(entry);
        }
        std::string names;
        for (std::size_t i = 0; i < std::min<std::size_t>(3, info.edges.size()); ++i)
            names += (i ? ", " : "") + info.edges[i].path;
        return usageError(file + ": " + tensor, "no such tensor", "a path in the file, for example " + names);
    }
    auto checkpoint = openCheckpoint(file);
    if (!checkpoint)
        return tl::make_unexpected(dump.error());
    const StoredTensor *stored = (*checkpoint)->info().find(tensor);
    if (!stored)
        return usageError(file + ": " + tensor, "no such tensor", "a tensor name of the checkpoint");
    return (*checkpoint)->readMatrix(*stored);
}

Expected<void> refuseNonFinite(const MatrixD &values, std::int64_t firstRow, const std::string &subject)
{
    for (std::size_t r = 0; r < values.rows(); ++r) {
        for (std::size_t c = 0; c < values.cols(); ++c) {
            if (!std::isfinite(values(r, c)))
                return dataError(subject, "non-finite value at row " + std::to_string(firstRow + std::int64_t(r)) + ", channel " + std::to_string(c),
                                 "finite numbers (choose other rows with --rows)");
        }
    }
    return {};
}

QuantizationResult summary(const Quantized &quantized, const TensorRows &rows)
{
    QuantizationResult result;
    const QuantizeCounts &counts = quantized.counts;
    result.squaredError = counts.squaredError;
    result.relativeFrobenius = counts.energy > 0 ? std::sqrt(counts.squaredError / counts.energy) : 0.0;
    result.zeroedFraction = counts.elements ? double(counts.zeroed) / double(counts.elements) : 0.0;
    result.saturatedFraction = counts.elements ? double(counts.saturated) / double(counts.elements) : 0.0;
    for (std::int16_t code : quantized.codes.values()) {
        result.sumCodes += code;
        result.sumAbsCodes += std::abs(int(code));
    }
    for (double step : quantized.steps)
        result.scaleChecksum += step;
    for (double zero : quantized.zeros)
        result.sumZeroPoints += zero;
    result.scaleCount = std::int64_t(quantized.steps.size());
    result.tensorScale = quantized.tensorScale;
    result.nearTies = std::int64_t(counts.nearTies);
    result.rowBegin = rows.begin;
    result.rowEnd = rows.end;
    result.columns = std::int64_t(rows.values.cols());
    return result;
}

} // namespace

Expected<QuantizationResult> Engine::quantize(const std::string &file, const QuantizeVerbRequest &request, std::stop_token stop) const
{
    const std::string subject = file + ": " + request.tensor;
    auto all = readNamed(file, request.tensor, m_global.open);
    if (!all)
        return tl::make_unexpected(all.error());
    auto rows = slice(*all, request, subject);
    if (!rows)
        return tl::make_unexpected(rows.error());
    if (auto finite = refuseNonFinite(rows->values, rows->begin, subject); !finite)
        return tl::make_unexpected(finite.error());
    if (stop.stop_requested())
        return cancelled(subject);

    QuantizeRequest kernel{.grid = request.spec.grid, .wantCodes = true};
    FixedRanges ranges;
    if (request.spec.grid.timing == Timing::Static) {
        const MatrixD &fit = rows->calibration ? *rows->calibration : rows->values;
        auto fitted = staticRanges(request.spec, fit.view());
        if (!fitted)
            return tl::make_unexpected(fitted.error());
        ranges = std::move(*fitted);
        if (request.spec.grid.format == NumberFormat::NvFp4)
            kernel.tensorScaleMax = std::max(std::abs(ranges.front().lo), std::abs(ranges.front().hi));
        else
            kernel.ranges = &ranges;
    }
    auto resident = m_backend->upload(rows->values.view());
    if (!resident)
        return machineError(subject, resident.error().message, "memory for the tensor");
    auto quantized = m_backend->quantize(**resident, kernel);
    if (!quantized)
        return dataError(subject, quantized.error().message, "a tensor the spec " + request.specText + " can be used on");
    QuantizationResult result = summary(*quantized, *rows);
    result.file = file;
    result.tensor = request.tensor;
    result.spec = canonicalText(request.spec, Role::Either);
    return result;
}

} // namespace planish
