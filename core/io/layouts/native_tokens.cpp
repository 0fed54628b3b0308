// The token table of a native dump: every column may be missing or too short, and rows of edges decide how long it must be.
#include <algorithm>
#include <limits>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/native_parts.h"
#include "core/io/printable.h"

namespace planish {

namespace {

struct Columns {
    std::vector<std::int64_t> id, request, position, phase, mask;
};

std::vector<std::int64_t> column(NativeReader &reader, const std::string &name)
{
    const DatasetInfo *dataset = reader.structure.find("/tokens/" + name);
    return dataset != nullptr ? readIntegers(reader, *dataset) : std::vector<std::int64_t>();
}

std::size_t rowsOfEdges(const NativeReader &reader)
{
    std::uint64_t rows = 0;
    for (const DumpEdge &edge : reader.result.info.edges)
        if (edge.rowToToken.empty())
            rows = std::max(rows, edge.rows);
    return static_cast<std::size_t>(rows);
}

template <class T> std::vector<T> narrowed(const std::vector<std::int64_t> &values)
{
    std::vector<T> out;
    out.reserve(values.size());
    for (const std::int64_t value : values)
        out.push_back(
            static_cast<T>(std::clamp<std::int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
    return out;
}

void noteShort(NativeReader &reader, const std::string &name, std::size_t have, std::size_t need, const std::string &rest)
{
    if (have > 0 && have < need)
        reader.note("/tokens/" + name + " has " + std::to_string(have) + " entries for " + std::to_string(need) + " rows; " +
                    rest);
}

/// Rows beyond the table become one request of their own, so that no split mixes them with a known one.
void completeRequests(NativeReader &reader, TokenTable &table, std::size_t size)
{
    const std::size_t known = table.request.size();
    noteShort(reader, "request", known, size, "the rest is taken as one more request");
    const std::int32_t next = known > 0 ? *std::max_element(table.request.begin(), table.request.end()) + 1 : 0;
    table.request.resize(size, next);
    const std::size_t positions = table.position.size();
    noteShort(reader, "position", positions, size, "the rest counts from 0");
    for (std::size_t row = positions; row < size; ++row)
        table.position.push_back(static_cast<std::int32_t>(row - positions));
}

void readText(NativeReader &reader, TokenTable &table)
{
    const DatasetInfo *dataset = reader.structure.find("/tokens/text");
    if (dataset == nullptr)
        return;
    Expected<std::vector<std::string>> texts = reader.source.readText(*dataset);
    if (!texts)
        return reader.note("/tokens/text: not used (" + texts.error().what + ")");
    if (texts->size() != table.size())
        return reader.note("/tokens/text has " + std::to_string(texts->size()) + " entries for " + std::to_string(table.size()) +
                           " rows; not used");
    table.text = std::move(*texts);
}

} // namespace

void readNativeTokens(NativeReader &reader)
{
    TokenTable &table = reader.result.info.tokens;
    const Columns columns{column(reader, "id"), column(reader, "request"), column(reader, "position"), column(reader, "phase"),
                          column(reader, "mask")};
    const std::size_t size = std::max({columns.id.size(), columns.request.size(), columns.position.size(), columns.phase.size(),
                                       columns.mask.size(), rowsOfEdges(reader)});
    table.hasId = !columns.id.empty();
    table.hasRequest = !columns.request.empty();
    table.hasPosition = !columns.position.empty();
    table.hasPhase = !columns.phase.empty();
    table.hasMask = !columns.mask.empty();
    table.id = narrowed<std::int32_t>(columns.id);
    table.request = narrowed<std::int32_t>(columns.request);
    table.position = narrowed<std::int32_t>(columns.position);
    table.phase = narrowed<std::uint8_t>(columns.phase);
    table.mask = narrowed<std::uint8_t>(columns.mask);
    noteShort(reader, "id", table.id.size(), size, "the rest has no id");
    noteShort(reader, "phase", table.phase.size(), size, "the rest is taken as prefill");
    noteShort(reader, "mask", table.mask.size(), size, "the rest is taken as unmasked");
    completeRequests(reader, table, size);
    table.id.resize(size, -1);
    table.phase.resize(size, 0);
    table.mask.resize(size, 1);
    readText(reader, table);
    const auto group = reader.structure.groups.find("/tokens");
    if (group != reader.structure.groups.end())
        table.unit = AttributeReader("/tokens", group->second, reader.result.info.notes).text("unit", "token");
}

} // namespace planish
