#include "core/evaluate/part_rows.h"

#include "core/evaluate/output_block.h"

namespace planish {

namespace {

PlacedRows placedRows(const EdgeParts &parts, const std::vector<std::int64_t> &fileRows)
{
    const TokenTable &tokens = parts.dump->info().tokens;
    PlacedRows placed{fileRows, {}};
    for (const std::int64_t row : fileRows) {
        const auto token = static_cast<std::size_t>(tokenOfRow(parts.dumpEdge, row));
        placed.positions.push_back(token < tokens.position.size() ? tokens.position[token] : -1);
    }
    return placed;
}

template <Part P> void describe(const EdgeParts &parts, const RowView<P> &view, PartRows &rows)
{
    rows.part = P;
    rows.placed = placedRows(parts, view.rows());
    rows.ranges = placedRows(parts, parts.calibration.rows());
    rows.units = view.units();
    rows.requests = view.requests();
    rows.available = view.available();
}

template <Part P> Expected<PartRows> withProduct(const EdgeParts &parts, const RowView<P> &view)
{
    PartRows rows;
    describe(parts, view, rows);
    auto product = makeProductRows(parts.backend, parts.edge.id.value, view.sharedX(), view.requests(),
                                   parts.calibration.sharedX(), parts.consumers);
    if (!product)
        return tl::make_unexpected(product.error());
    rows.product = std::move(*product);
    return rows;
}

} // namespace

std::string_view nameOf(Part part)
{
    switch (part) {
    case Part::Calibration:
        return "calibration";
    case Part::Validation:
        return "validation";
    case Part::HeldOut:
        return "held_out";
    case Part::Sealed:
        return "sealed";
    case Part::All:
        return "all";
    }
    return "";
}

Expected<PartRows> partRows(const EdgeData &data, Part part)
{
    const EdgeParts &parts = data.parts();
    if (part == Part::HeldOut) {
        PartRows rows;
        describe(parts, parts.heldOut, rows);
        rows.product = parts.heldOutProduct;
        return rows;
    }
    if (part == Part::Calibration)
        return withProduct(parts, parts.calibration);
    if (part != Part::All)
        return usageError(parts.edge.id.value, "rows of part " + std::string(nameOf(part)) + " are not measured alone",
                          "held_out, calibration or all");
    auto view = loadRows<Part::All>(*parts.dump, parts.dumpEdge, parts.split, parts.options.rows.budget);
    if (!view)
        return tl::make_unexpected(view.error());
    return withProduct(parts, *view);
}

OutputBlock blockOf(const EdgeData &data, const PartRows &rows, ResidualSums sums)
{
    ErrorSums whole;
    whole.fileRows = rows.placed.fileRows;
    whole.rowUnits = rows.units;
    whole.rowRequests = rows.requests;
    whole.sums = std::move(sums);
    for (const ResidentConsumer &consumer : rows.product.consumers)
        whole.consumerOutputs.push_back(consumer.weight->rows());
    const EdgeParts &parts = data.parts();
    return outputBlock(whole, parts.consumerNames, parts.dump->info().tokens, parts.dumpEdge);
}

double relativeOf(const ResidualSums &sums)
{
    ErrorSums whole;
    whole.sums.rowError = sums.rowError;
    whole.sums.rowReference = sums.rowReference;
    return whole.relativeFrobenius();
}

} // namespace planish
