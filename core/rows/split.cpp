#include "core/rows/split.h"

#include <algorithm>
#include <cmath>

#include "core/rows/units.h"

namespace planish {

namespace {

std::ptrdiff_t lastQuarter(std::ptrdiff_t count)
{
    return (count + 3) / 4;
}

/// Rows of position 0 that fall into one part only change what that part can teach (evaluation.md 1, item 9).
void noteLonelyFirstPositions(Split &split, const TokenTable &tokens)
{
    if (!tokens.hasPosition || tokens.position.empty())
        return;
    std::vector<std::string> parts;
    const auto look = [&](const std::vector<std::int32_t> &units, const char *part) {
        for (const std::int32_t unit : units)
            for (const std::int64_t token : split.units[static_cast<std::size_t>(unit)].tokens)
                if (tokens.position[static_cast<std::size_t>(token)] == 0) {
                    parts.emplace_back(part);
                    return;
                }
    };
    look(split.calibration, "calibration");
    look(split.heldOut, "held-out");
    look(split.sealed, "sealed");
    if (parts.size() == 1)
        split.notes.push_back("rows at position 0 fall into the " + parts.front() + " part only");
}

Expected<void> checkRanges(const std::vector<RowRange> &ranges, const char *flag)
{
    for (const auto &[begin, end] : ranges)
        if (begin < 0 || end <= begin)
            return usageError(flag, std::to_string(begin) + ":" + std::to_string(end) + " is no range of rows",
                              "expected A:B with 0 <= A < B");
    return {};
}

bool overlap(const std::vector<RowRange> &a, const std::vector<RowRange> &b)
{
    return std::ranges::any_of(a, [&](const RowRange &x) {
        return std::ranges::any_of(b, [&](const RowRange &y) { return x.first < y.second && y.first < x.second; });
    });
}

Expected<Split> explicitSplit(const RowRequest &request)
{
    if (request.fitRows.empty() || request.scoreRows.empty())
        return usageError(request.fitRows.empty() ? "--fit-rows" : "--score-rows", "is missing",
                          "expected --fit-rows and --score-rows together");
    if (const auto fit = checkRanges(request.fitRows, "--fit-rows"); !fit)
        return tl::make_unexpected(fit.error());
    if (const auto score = checkRanges(request.scoreRows, "--score-rows"); !score)
        return tl::make_unexpected(score.error());
    Split split;
    split.unit = SplitUnit::Explicit;
    split.seed = request.splitSeed;
    split.units = {{"fit", 0, {}}, {"score", 0, {}}};
    split.calibration = {0};
    split.heldOut = {1};
    split.validationByRows = true;
    split.request = request;
    split.inSample = overlap(request.fitRows, request.scoreRows);
    return split;
}

/// Calibration, held-out and sealed units of `order`, and the inner validation part.
void cutParts(Split &split, const std::vector<std::int32_t> &order, double fraction)
{
    const auto units = static_cast<double>(order.size());
    const auto calibration = static_cast<std::ptrdiff_t>(std::clamp(std::nearbyint(fraction * units), 1.0, units - 2.0));
    const std::ptrdiff_t rest = std::ssize(order) - calibration;
    const auto heldOutEnd = order.begin() + calibration + (rest + 1) / 2;
    split.calibration.assign(order.begin(), order.begin() + calibration);
    split.heldOut.assign(order.begin() + calibration, heldOutEnd);
    split.sealed.assign(heldOutEnd, order.end());
    split.validationByRows = calibration == 1;
    if (!split.validationByRows)
        split.validation.assign(split.calibration.end() - lastQuarter(calibration), split.calibration.end());
}

} // namespace

std::int64_t tokenOfRow(const DumpEdge &edge, std::int64_t row)
{
    return edge.rowToToken.empty() ? row : edge.rowToToken[static_cast<std::size_t>(row)];
}

Expected<Split> makeSplit(const TokenTable &tokens, const RowRequest &request, const std::string &file)
{
    if (!request.fitRows.empty() || !request.scoreRows.empty())
        return explicitSplit(request);
    if (!(request.calibration > 0.0 && request.calibration < 1.0))
        return usageError("--calibration", "is " + std::to_string(request.calibration), "expected a fraction between 0 and 1");
    Split split;
    UnitList formed = formUnits(tokens, request);
    if (formed.units.size() < 3)
        return dataError(file, "its counted rows form " + std::to_string(formed.units.size()) + " units",
                         "a split needs three units");
    split.unit = formed.kind;
    split.seed = request.splitSeed;
    split.request = request;
    split.units = std::move(formed.units);
    cutParts(split, hashedOrder(split.units, request.splitSeed), request.calibration);
    noteLonelyFirstPositions(split, tokens);
    return split;
}

std::vector<std::int64_t> countedRows(const TokenTable &tokens, const DumpEdge &edge, const RowRequest &request)
{
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(edge.rows); ++row) {
        const std::int64_t token = tokenOfRow(edge, row);
        if (token >= 0 && static_cast<std::size_t>(token) < tokens.size() &&
            isCounted(tokens, static_cast<std::size_t>(token), request))
            rows.push_back(row);
    }
    return rows;
}

} // namespace planish
