// Rows of one part of an edge, read and filtered; the inner validation part of a calibration view.
#include <algorithm>
#include <cmath>

#include "core/rows/split.h"
#include "core/rows/units.h"

namespace planish {

namespace {

using Rows = std::vector<std::int64_t>;

std::size_t lastQuarter(std::size_t count)
{
    return (count + 3) / 4;
}

/// Unit of every token row, -1 where no unit holds it.
std::vector<std::int32_t> unitOfTokens(const Split &split, std::size_t tokens)
{
    std::vector<std::int32_t> unitOf(tokens, -1);
    for (std::size_t u = 0; u < split.units.size(); ++u)
        for (const std::int64_t token : split.units[u].tokens)
            unitOf[static_cast<std::size_t>(token)] = static_cast<std::int32_t>(u);
    return unitOf;
}

bool isPadding(const TokenTable &tokens, std::int64_t token)
{
    return token >= 0 && static_cast<std::size_t>(token) < tokens.mask.size() &&
           tokens.mask[static_cast<std::size_t>(token)] == 0;
}

/// Explicit rows in the order given; padding is no row and rows past the edge do not exist.
Rows rowsOfRanges(const std::vector<RowRange> &ranges, const TokenTable &tokens, const DumpEdge &edge)
{
    Rows rows;
    for (const auto &[begin, end] : ranges)
        for (std::int64_t row = begin; row < std::min(end, static_cast<std::int64_t>(edge.rows)); ++row)
            if (!isPadding(tokens, tokenOfRow(edge, row)))
                rows.push_back(row);
    return rows;
}

Rows explicitRows(const Split &split, const TokenTable &tokens, const DumpEdge &edge, Part part)
{
    if (part == Part::All)
        return countedRows(tokens, edge, split.request);
    if (part == Part::HeldOut)
        return rowsOfRanges(split.request.scoreRows, tokens, edge);
    if (part == Part::Sealed)
        return {};
    Rows rows = rowsOfRanges(split.request.fitRows, tokens, edge);
    if (part == Part::Validation)
        rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(lastQuarter(rows.size())));
    return rows;
}

const std::vector<std::int32_t> &unitsOfPart(const Split &split, Part part)
{
    if (part == Part::HeldOut)
        return split.heldOut;
    if (part == Part::Sealed)
        return split.sealed;
    return part == Part::Validation && !split.validationByRows ? split.validation : split.calibration;
}

Expected<void> checkExplicit(const Split &split, const DumpEdge &edge)
{
    for (const auto *ranges : {&split.request.fitRows, &split.request.scoreRows})
        for (const auto &[begin, end] : *ranges)
            if (end > static_cast<std::int64_t>(edge.rows))
                return usageError(edge.id.value, "has no rows " + std::to_string(begin) + ":" + std::to_string(end),
                                  "expected rows below " + std::to_string(edge.rows));
    return {};
}

/// Drops the rows of `x` that hold a non-finite value, in place in `rows`.
MatrixD finiteRows(MatrixD x, Rows &rows, LoadedCounts &counts)
{
    std::size_t kept = 0;
    for (std::size_t r = 0; r < x.rows(); ++r) {
        const auto row = x.row(r);
        const auto bad = std::ranges::find_if(row, [](double value) { return !std::isfinite(value); });
        if (bad != row.end()) {
            if (counts.nonFiniteRows++ == 0) {
                counts.firstRow = rows[r];
                counts.firstChannel = bad - row.begin();
            }
            continue;
        }
        if (kept != r)
            std::ranges::copy(row, x.row(kept).begin());
        rows[kept++] = rows[r];
    }
    if (kept == x.rows())
        return x;
    rows.resize(kept);
    MatrixD finite(kept, x.cols());
    std::copy_n(x.data(), finite.size(), finite.data());
    return finite;
}

/// Rows of a calibration view that are (or are not) its inner validation part.
std::vector<std::size_t> validationPlaces(const CalibrationRows &view, const Split &split, bool wanted)
{
    std::vector<std::size_t> places;
    const std::size_t byRows = view.size() - lastQuarter(view.size());
    for (std::size_t i = 0; i < view.size(); ++i) {
        const bool isValidation =
            split.validationByRows ? i >= byRows : std::ranges::find(split.validation, view.units()[i]) != split.validation.end();
        if (isValidation == wanted)
            places.push_back(i);
    }
    return places;
}

template <Part P> Expected<RowView<P>> pick(const CalibrationRows &view, const std::vector<std::size_t> &places, const char *what)
{
    if (places.empty())
        return dataError("calibration rows", std::string("leave no ") + what + " rows on this edge",
                         "expected rows in the inner validation part and beside it");
    Rows rows;
    std::vector<std::int32_t> units, requests;
    auto x = std::make_shared<MatrixD>(places.size(), view.x().cols());
    for (std::size_t i = 0; i < places.size(); ++i) {
        rows.push_back(view.rows()[places[i]]);
        units.push_back(view.units()[places[i]]);
        requests.push_back(view.requests()[places[i]]);
        std::ranges::copy(view.x().row(places[i]), x->row(i).begin());
    }
    const auto available = static_cast<std::int64_t>(places.size());
    return RowView<P>(std::move(rows), std::move(units), std::move(requests), std::move(x), available);
}

} // namespace

std::vector<std::int64_t> rowsOfPart(const Split &split, const TokenTable &tokens, const DumpEdge &edge, Part part)
{
    if (split.unit == SplitUnit::Explicit)
        return explicitRows(split, tokens, edge, part);
    if (part == Part::All)
        return countedRows(tokens, edge, split.request);
    std::vector<std::uint8_t> inPart(split.units.size(), 0);
    for (const std::int32_t unit : unitsOfPart(split, part))
        inPart[static_cast<std::size_t>(unit)] = 1;
    const std::vector<std::int32_t> unitOf = unitOfTokens(split, tokens.size());
    Rows rows;
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(edge.rows); ++row) {
        const std::int64_t token = tokenOfRow(edge, row);
        if (token < 0 || static_cast<std::size_t>(token) >= unitOf.size())
            continue;
        const std::int32_t unit = unitOf[static_cast<std::size_t>(token)];
        if (unit >= 0 && inPart[static_cast<std::size_t>(unit)] != 0)
            rows.push_back(row);
    }
    if (part == Part::Validation && split.validationByRows)
        rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(lastQuarter(rows.size())));
    return rows;
}

template <Part P>
Expected<RowView<P>> loadRows(const Dump &dump, const DumpEdge &edge, const Split &split, std::int64_t budget,
                              LoadedCounts *counts)
{
    const TokenTable &tokens = dump.info().tokens;
    const bool isExplicit = split.unit == SplitUnit::Explicit;
    if (isExplicit)
        if (const auto exist = checkExplicit(split, edge); !exist)
            return tl::make_unexpected(exist.error());
    Rows rows = rowsOfPart(split, tokens, edge, P);
    const auto available = static_cast<std::int64_t>(rows.size());
    if (!isExplicit)
        rows = withinBudget(rows, tokens, edge, budget);
    Expected<MatrixD> read = dump.readRows(edge, rows);
    if (!read)
        return tl::make_unexpected(read.error());
    LoadedCounts found;
    auto x = std::make_shared<const MatrixD>(finiteRows(*std::move(read), rows, found));
    if (counts != nullptr)
        *counts = found;
    const std::vector<std::int32_t> unitOf = unitOfTokens(split, tokens.size());
    std::vector<std::int32_t> units, requests;
    for (const std::int64_t row : rows) {
        const auto token = static_cast<std::size_t>(tokenOfRow(edge, row));
        const std::int32_t explicitUnit = P == Part::HeldOut ? 1 : 0;
        units.push_back(isExplicit ? explicitUnit : token < unitOf.size() ? unitOf[token] : -1);
        requests.push_back(token < tokens.size() ? tokens.request[token] : 0);
    }
    return RowView<P>(std::move(rows), std::move(units), std::move(requests), std::move(x), available);
}

template Expected<RowView<Part::Calibration>> loadRows(const Dump &, const DumpEdge &, const Split &, std::int64_t,
                                                       LoadedCounts *);
template Expected<RowView<Part::Validation>> loadRows(const Dump &, const DumpEdge &, const Split &, std::int64_t,
                                                      LoadedCounts *);
template Expected<RowView<Part::HeldOut>> loadRows(const Dump &, const DumpEdge &, const Split &, std::int64_t, LoadedCounts *);
template Expected<RowView<Part::Sealed>> loadRows(const Dump &, const DumpEdge &, const Split &, std::int64_t, LoadedCounts *);
template Expected<RowView<Part::All>> loadRows(const Dump &, const DumpEdge &, const Split &, std::int64_t, LoadedCounts *);

Expected<CalibrationRows> withoutValidation(const CalibrationRows &rows, const Split &split)
{
    return pick<Part::Calibration>(rows, validationPlaces(rows, split, false), "fitting");
}

Expected<ValidationRows> validationOf(const CalibrationRows &rows, const Split &split)
{
    return pick<Part::Validation>(rows, validationPlaces(rows, split, true), "validation");
}

} // namespace planish
