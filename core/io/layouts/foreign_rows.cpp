// Rows of foreign edges: requests, positions, masks and ids, the token table they share, and rows that were never written.
#include <algorithm>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/piece_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::uint64_t kScanBudget = std::uint64_t{16} << 20;

bool sameRows(const TokenTable &table, std::size_t begin, std::size_t count, const TokenTable &rows)
{
    const auto equal = [&](const auto &all, const auto &own) {
        return std::equal(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(begin));
    };
    return count == rows.size() && equal(table.id, rows.id) && equal(table.request, rows.request) &&
           equal(table.position, rows.position) && equal(table.phase, rows.phase) && equal(table.mask, rows.mask);
}

bool isPlain(const TokenTable &rows)
{
    return !rows.hasRequest && !rows.hasMask && !rows.hasPhase && !rows.hasId;
}

} // namespace

TokenTable plainRows(std::uint64_t rows)
{
    TokenTable table;
    const auto count = static_cast<std::size_t>(rows);
    table.id.assign(count, -1);
    table.request.assign(count, 0);
    table.phase.assign(count, 0);
    table.mask.assign(count, 1);
    for (std::size_t row = 0; row < count; ++row)
        table.position.push_back(static_cast<std::int32_t>(row));
    return table;
}

void appendRows(TokenTable &table, const TokenTable &more)
{
    const auto append = [](auto &to, const auto &from) { to.insert(to.end(), from.begin(), from.end()); };
    append(table.id, more.id);
    append(table.request, more.request);
    append(table.position, more.position);
    append(table.phase, more.phase);
    append(table.mask, more.mask);
    table.hasId = table.hasId || more.hasId;
    table.hasRequest = table.hasRequest || more.hasRequest;
    table.hasPosition = table.hasPosition || more.hasPosition;
    table.hasPhase = table.hasPhase || more.hasPhase;
    table.hasMask = table.hasMask || more.hasMask;
}

void ForeignReader::applyMask(TokenTable &rows, const std::vector<std::int64_t> &mask, const std::string &path)
{
    if (mask.size() != rows.size())
        return;
    std::size_t left = 0;
    std::int32_t position = 0;
    for (std::size_t row = 0; row < mask.size(); ++row) {
        if (row == 0 || rows.request[row] != rows.request[row - 1])
            position = 0;
        rows.mask[row] = mask[row] != 0 ? 1 : 0;
        left += mask[row] == 0 ? 1 : 0;
        rows.position[row] = position;
        position += mask[row] != 0 ? 1 : 0;
    }
    rows.hasMask = true;
    if (left > 0)
        note(printable(path) + ": " + std::to_string(left) + " of " + std::to_string(mask.size()) +
             " rows are padding and left out of every statistic");
}

TokenTable ForeignReader::rowsOf(const DatasetInfo &dataset, const Axes &axes, bool outwards)
{
    std::uint64_t rows = 1;
    std::uint64_t perRequest = 1;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        const bool isRow = axes[axis] == Axis::Token || axes[axis] == Axis::Request;
        rows *= isRow ? dataset.shape[axis] : 1;
        perRequest *= axes[axis] == Axis::Token ? dataset.shape[axis] : 1;
    }
    TokenTable table = plainRows(rows);
    const std::uint64_t requests = rows / std::max<std::uint64_t>(perRequest, 1);
    // Tokens that run faster than requests; the other order is [token, batch, channel].
    const auto token = std::find(axes.begin(), axes.end(), Axis::Token);
    const auto request = std::find(axes.begin(), axes.end(), Axis::Request);
    const bool tokenFirst = token < request;
    for (std::uint64_t row = 0; row < rows && requests > 1; ++row) {
        const std::uint64_t which = tokenFirst ? row % requests : row / perRequest;
        table.request[row] = static_cast<std::int32_t>(which);
        table.position[row] = static_cast<std::int32_t>(tokenFirst ? row / requests : row % perRequest);
    }
    table.hasRequest = requests > 1;
    table.hasPosition = table.hasRequest;
    if (const DatasetInfo *ids = beside(dataset.path, {"input_ids", "token_ids", "token_id", "ids"}, rows, outwards)) {
        const std::vector<std::int64_t> values = integers(*ids);
        for (std::size_t row = 0; row < values.size(); ++row)
            table.id[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(values[row], -1, INT32_MAX));
        table.hasId = !values.empty();
    }
    if (const DatasetInfo *mask = beside(dataset.path, {"attention_mask", "mask", "valid_mask", "token_mask"}, rows, outwards))
        applyMask(table, integers(*mask), mask->path);
    else if (requests > 1 && beside(dataset.path, {"attention_mask", "mask"}, requests, outwards) != nullptr)
        note(printable(dataset.path) + ": a mask with one entry per request is not used");
    return table;
}

void ForeignReader::placeRows(DumpEdge &edge, TokenTable rows)
{
    TokenTable &table = m_result.info.tokens;
    if (rows.size() != edge.rows)
        rows = plainRows(edge.rows);
    const bool plain = isPlain(rows);
    for (const auto &[begin, count] : m_blocks) {
        // Plain rows say only their number: row m is token m, as far as the longest edge goes.
        const bool prefix = plain && begin == 0 && count > rows.size() && isPlain(table);
        if (!prefix && !sameRows(table, begin, count, rows))
            continue;
        for (std::size_t row = 0; begin > 0 && row < rows.size(); ++row)
            edge.rowToToken.push_back(static_cast<std::int32_t>(begin + row));
        return;
    }
    if (plain && m_blocks.size() == 1 && isPlain(table)) {
        table = plainRows(edge.rows);
        m_blocks[0].second = rows.size();
        return;
    }
    const std::size_t begin = table.size();
    if (begin > 0) {
        const std::int32_t next = *std::max_element(table.request.begin(), table.request.end()) + 1;
        for (std::int32_t &request : rows.request)
            request += next;
        rows.hasRequest = true;
        for (std::size_t row = 0; row < rows.size(); ++row)
            edge.rowToToken.push_back(static_cast<std::int32_t>(begin + row));
    }
    appendRows(table, rows);
    m_blocks.emplace_back(begin, rows.size());
}

/// All-zero rows at the end are rows nobody wrote: said, not dropped.
void ForeignReader::inspectTail(const DumpEdge &edge)
{
    const EdgeData &data = m_result.edges.at(edge.id.value);
    const std::uint64_t rowBytes = edge.channels * data.dataset.elementBytes;
    if (edge.rows * rowBytes > kScanBudget)
        return;
    std::vector<std::byte> bytes(static_cast<std::size_t>(rowBytes));
    const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (!readMatrixRows(m_source, data, edge.rows - 1, edge.rows, bytes) || !std::all_of(bytes.begin(), bytes.end(), zero))
        return;
    bytes.resize(static_cast<std::size_t>(edge.rows * rowBytes));
    if (!readMatrixRows(m_source, data, 0, edge.rows, bytes))
        return;
    std::size_t end = bytes.size();
    while (end > 0 && bytes[end - 1] == std::byte{0})
        --end;
    const std::uint64_t written = (end + rowBytes - 1) / rowBytes;
    if (written == 0)
        note(printable(edge.path) + ": all " + std::to_string(edge.rows) + " rows are zero");
    else if (written < edge.rows)
        note(printable(edge.path) + ": " + std::to_string(edge.rows - written) + " trailing all-zero rows");
}

} // namespace planish
