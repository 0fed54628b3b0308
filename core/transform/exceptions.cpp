#include "core/transform/exceptions.h"

#include <algorithm>
#include <cmath>

namespace planish {

namespace {

/// Unit index of each row by first appearance of its request, and the ids in that order.
void nameUnits(ResolvedExceptions &resolved, std::span<const std::int32_t> requests)
{
    for (const std::int32_t request : requests) {
        const auto found = std::ranges::find(resolved.unitIds, request);
        resolved.rowUnit.push_back(static_cast<std::int32_t>(found - resolved.unitIds.begin()));
        if (found == resolved.unitIds.end())
            resolved.unitIds.push_back(request);
    }
}

void resolveDynamic(ResolvedExceptions &resolved, const DynamicExceptions &rule, ConstViewD x,
                    std::span<const std::int32_t> requests)
{
    if (rule.unit == ExceptionUnit::Request && !requests.empty())
        nameUnits(resolved, requests);
    else
        resolved.unitIds = {0};
    resolved.unitColumns.assign(resolved.unitIds.size(), std::vector<std::uint8_t>(x.cols, 0));
    if (rule.threshold > 0.0) // 0: no decomposition
        for (std::size_t r = 0; r < x.rows; ++r) {
            const std::size_t unit = resolved.rowUnit.empty() ? 0 : static_cast<std::size_t>(resolved.rowUnit[r]);
            std::vector<std::uint8_t> &columns = resolved.unitColumns[unit];
            for (std::size_t k = 0; k < x.cols; ++k)
                columns[k] |= exceeds(x(r, k), rule.threshold, rule.comparator) ? 1 : 0;
        }
    if (resolved.unitIds.size() == 1)
        resolved.rowUnit.clear();
}

Expected<void> resolveStatic(ResolvedExceptions &resolved, const StaticExceptions &rule, std::size_t channels)
{
    resolved.unitIds = {0};
    resolved.unitColumns.assign(1, std::vector<std::uint8_t>(channels, 0));
    for (const std::int64_t column : rule.columns) {
        if (column < 0 || static_cast<std::size_t>(column) >= channels)
            return dataError("exceptions", "column " + std::to_string(column) + " does not exist",
                             "expected columns below " + std::to_string(channels));
        resolved.unitColumns[0][static_cast<std::size_t>(column)] = 1;
    }
    return {};
}

} // namespace

bool exceeds(double value, double threshold, Comparator comparator)
{
    const double size = std::abs(value);
    return comparator == Comparator::GreaterEqual ? size >= threshold : size > threshold;
}

std::size_t ResolvedExceptions::columnCount(std::size_t unit) const
{
    return static_cast<std::size_t>(std::ranges::count(unitColumns[unit], std::uint8_t{1}));
}

Expected<ResolvedExceptions> resolveExceptions(const Exceptions &exceptions, ConstViewD xPrime,
                                               std::span<const std::int32_t> requests)
{
    ResolvedExceptions resolved;
    double threshold = exceptions.stepThreshold;
    if (const auto *dynamic = std::get_if<DynamicExceptions>(&exceptions.rule)) {
        resolveDynamic(resolved, *dynamic, xPrime, requests);
        threshold = dynamic->threshold;
    } else if (const auto done = resolveStatic(resolved, std::get<StaticExceptions>(exceptions.rule), xPrime.cols); !done) {
        return tl::make_unexpected(done.error());
    }
    if (resolved.rowUnit.empty())
        resolved.activation.columns = resolved.unitColumns[0];
    else {
        resolved.activation.rowUnit = resolved.rowUnit;
        resolved.activation.unitColumns = resolved.unitColumns;
    }
    resolved.activation.stepIgnoresElements = exceptions.stepIgnores == StepIgnores::Elements;
    resolved.activation.threshold = threshold;
    return resolved;
}

ExceptionMask weightMask(const Exceptions &exceptions, const std::vector<std::uint8_t> &columns)
{
    ExceptionMask mask;
    mask.columns = columns;
    mask.keepExact = exceptions.weight != Precision::Quantized;
    return mask;
}

} // namespace planish
