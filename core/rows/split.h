// Which rows belong to calibration, held-out and sealed: units, their hashed order, the parts, the row budget. evaluation.md 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/io/dump.h"
#include "core/io/error.h"
#include "core/rows/row_view.h"

namespace planish {

enum class Phase { Prefill, Decode, Both };

using RowRange = std::pair<std::int64_t, std::int64_t>; ///< half open, rows of the file

/// The `[rows]` flags of cli.md.
struct RowRequest {
    double calibration = 0.5;
    std::uint64_t splitSeed = 0;
    std::int64_t budget = 2048; ///< rows per part that multiply matrices; < 0 = all
    Phase phase = Phase::Both;
    std::vector<std::int32_t> skipPositions;
    std::vector<std::int32_t> skipIds;
    std::vector<RowRange> fitRows, scoreRows; ///< explicit rows; both or neither
    bool operator==(const RowRequest &) const = default;
};

enum class SplitUnit { Request, Block, Explicit };

struct Unit {
    std::string id;                     ///< "2" or "0/3"
    std::int32_t request = 0;
    std::vector<std::int64_t> tokens;   ///< token-table rows, file order
};

/// The split of a dump, formed once from its token rows; edges use those of the rows they have.
struct Split {
    SplitUnit unit = SplitUnit::Request;
    std::uint64_t seed = 0;
    std::vector<Unit> units;                       ///< in file order
    std::vector<std::int32_t> calibration;         ///< unit indices in hashed order, validation included (last quarter)
    std::vector<std::int32_t> validation;          ///< of those, the inner validation units
    std::vector<std::int32_t> heldOut, sealed;
    bool validationByRows = false;                 ///< one calibration unit: its last quarter of rows
    RowRequest request;
    std::vector<std::string> notes;
    bool inSample = false;                         ///< explicit fit and score rows overlap
};

/// Forms units and parts (evaluation.md 1). Fewer than three units or blocks: error "a split needs three units".
Expected<Split> makeSplit(const TokenTable &tokens, const RowRequest &request, const std::string &file);

/// Counted rows of an edge under the filters, file rows in file order (non-finite rows not yet removed).
std::vector<std::int64_t> countedRows(const TokenTable &tokens, const DumpEdge &edge, const RowRequest &request);

/// File rows of one part on an edge, in file order, before the budget.
std::vector<std::int64_t> rowsOfPart(const Split &split, const TokenTable &tokens, const DumpEdge &edge, Part part);

/// Budgeted subset: largest remainder per request, rows floor(i n_r / b_r). `budget` < 0 = all.
std::vector<std::int64_t> withinBudget(const std::vector<std::int64_t> &rows, const TokenTable &tokens, const DumpEdge &edge,
                                       std::int64_t budget);

/// Reads the rows of one part. `budget` < 0 = all. Rows with non-finite values are dropped and counted.
/// Explicit instantiations for all parts live in split.cpp.
struct LoadedCounts {
    std::int64_t nonFiniteRows = 0;
    std::int64_t firstRow = -1, firstChannel = -1;
};
template <Part P>
Expected<RowView<P>> loadRows(const Dump &dump, const DumpEdge &edge, const Split &split, std::int64_t budget,
                              LoadedCounts *counts = nullptr);

/// Calibration rows without the inner validation part, as a calibration view (for choices scored on validation rows).
Expected<CalibrationRows> withoutValidation(const CalibrationRows &rows, const Split &split);
/// The inner validation rows of a loaded calibration view.
Expected<ValidationRows> validationOf(const CalibrationRows &rows, const Split &split);

/// Position in the token table of a file row of this edge.
std::int64_t tokenOfRow(const DumpEdge &edge, std::int64_t row);

} // namespace planish
