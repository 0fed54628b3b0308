// What a native dump says about itself that cannot be, and rows that look unwritten: notes, never a refusal.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/native_parts.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::uint64_t kScanBudget = std::uint64_t{64} << 20; ///< datasets whose values are looked at when the file is opened
constexpr std::uint64_t kSampleBytes = 65536;
constexpr std::size_t kShown = 8;

std::string withoutRange(const std::string &consumer)
{
    const std::size_t bracket = consumer.find('[');
    return bracket != std::string::npos && consumer.ends_with(']') ? consumer.substr(0, bracket) : consumer;
}

void checkConsumer(NativeReader &reader, const DumpEdge &edge, const std::string &name,
                   const std::map<std::string, const TensorEntry *> &weights, std::vector<std::string> &absent)
{
    const auto found = weights.find(withoutRange(name));
    const std::string who = printable(edge.path) + ": consumer " + printable(name);
    if (found == weights.end()) {
        const bool isEdge = reader.result.info.findEdge(EdgeId{name}) != nullptr;
        absent.push_back(who + (isEdge ? " is an edge, not a weight" : " has no weights in the file"));
        return;
    }
    const std::vector<std::uint64_t> &shape = found->second->shape;
    if (shape.size() != 2)
        reader.note(who + " has shape " + shapeText(shape) + ", expected [outputs, " + std::to_string(edge.channels) + "]");
    else if (shape[1] != edge.channels && shape[0] != edge.channels)
        reader.note(who + " has " + std::to_string(shape[1]) + " channels, the edge " + std::to_string(edge.channels));
}

void checkPlaces(NativeReader &reader)
{
    std::map<std::pair<std::int64_t, std::string>, const DumpEdge *> places;
    for (const DumpEdge &edge : reader.result.info.edges) {
        if (edge.layer < 0 || edge.site == "other")
            continue;
        const auto [first, isNew] = places.emplace(std::pair(edge.layer, edge.site), &edge);
        if (!isNew)
            reader.note(printable(edge.path) + ": duplicate, same layer and site as " + printable(first->second->path));
    }
}

bool allZero(std::span<const std::byte> row)
{
    // -0.0 counts as written: nobody preallocates it.
    return std::all_of(row.begin(), row.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// All-zero rows at the end, counted backwards in blocks; reading stops at the first written row.
std::uint64_t trailingZeroRows(NativeReader &reader, const DumpEdge &edge, const DatasetInfo &dataset)
{
    const std::uint64_t rowBytes = edge.channels * dataset.elementBytes;
    const std::uint64_t blockRows =
        std::max<std::uint64_t>(dataset.chunk.empty() ? 1 : dataset.chunk[0], kSampleBytes / rowBytes + 1);
    std::uint64_t step = 1;
    for (std::uint64_t end = edge.rows; end > 0;) {
        const std::uint64_t begin = end - std::min(end, step);
        std::vector<std::byte> bytes(static_cast<std::size_t>((end - begin) * rowBytes));
        if (!reader.source.readRows(dataset, begin, end, bytes))
            return 0;
        for (std::uint64_t row = end; row-- > begin;)
            if (!allZero(std::span(bytes).subspan(static_cast<std::size_t>((row - begin) * rowBytes),
                                                  static_cast<std::size_t>(rowBytes))))
                return edge.rows - 1 - row;
        end = begin;
        step = blockRows;
    }
    return edge.rows;
}

void inspectTail(NativeReader &reader, const DumpEdge &edge, const DatasetInfo &dataset)
{
    const AttributeReader attributes(edge.path, dataset.attributes, reader.result.info.notes);
    const std::int64_t written = attributes.integer("write_index", -1);
    if (written >= 0 && static_cast<std::uint64_t>(written) < edge.rows)
        reader.note(printable(edge.path) + ": write_index is " + std::to_string(written) + " of " + std::to_string(edge.rows) +
                    " rows");
    const std::uint64_t zeros = trailingZeroRows(reader, edge, dataset);
    if (zeros == edge.rows)
        reader.note(printable(edge.path) + ": all " + std::to_string(zeros) + " rows are zero");
    else if (zeros > 0)
        reader.note(printable(edge.path) + ": " + std::to_string(zeros) + " trailing all-zero rows");
}

bool upcastRows(NativeReader &reader, const DatasetInfo &dataset, std::uint64_t begin, std::uint64_t end)
{
    const std::uint64_t columns = dataset.shape[1];
    std::vector<std::byte> bytes(static_cast<std::size_t>((end - begin) * columns * dataset.elementBytes));
    if (!reader.source.readRows(dataset, begin, end, bytes))
        return false;
    std::vector<float> values(bytes.size() / sizeof(float));
    widen(bytes, dataset.type, dataset.order, std::span<float>(values));
    return looksUpcast(values);
}

/// bf16 written as f32: a sample decides against it, every row (of small datasets) for it.
void inspectUpcast(NativeReader &reader, DumpEdge &edge, const DatasetInfo &dataset)
{
    if (dataset.type != StoredType::F32)
        return;
    const std::uint64_t rowBytes = edge.channels * dataset.elementBytes;
    const std::uint64_t sample = std::min<std::uint64_t>(edge.rows, kSampleBytes / rowBytes + 1);
    if (rowBytes > kScanBudget || !upcastRows(reader, dataset, 0, sample))
        return;
    const bool whole = edge.rows * rowBytes <= kScanBudget;
    if (whole && !upcastRows(reader, dataset, 0, edge.rows))
        return;
    edge.upcastBf16 = true;
    reader.note(printable(edge.path) + ": float32 whose low 16 bits are all zero: upcast bf16" +
                (whole ? "" : " (seen in the first " + std::to_string(sample) + " rows)"));
}

} // namespace

void checkNativeEdges(NativeReader &reader)
{
    checkPlaces(reader);
    if (reader.result.info.weights.empty())
        return;
    std::map<std::string, const TensorEntry *> weights;
    for (const TensorEntry &weight : reader.result.info.weights)
        weights.emplace(weight.name.value, &weight);
    std::vector<std::string> absent;
    for (const DumpEdge &edge : reader.result.info.edges)
        for (const std::string &consumer : edge.consumers)
            checkConsumer(reader, edge, consumer, weights, absent);
    for (std::size_t i = 0; i < absent.size() && i < kShown; ++i)
        reader.note(absent[i]);
    if (absent.size() > kShown)
        reader.note(std::to_string(absent.size() - kShown) + " more consumers have no weights in the file");
}

void inspectNativeRows(NativeReader &reader)
{
    for (DumpEdge &edge : reader.result.info.edges) {
        const DatasetInfo &dataset = reader.result.edges.at(edge.id.value).dataset;
        const std::uint64_t chunkRows = dataset.chunk.empty() ? 1 : dataset.chunk[0];
        // One chunk of every edge is opened; where that alone is heavy, opening stays cheap and says nothing.
        if (chunkRows * edge.channels * dataset.elementBytes > kScanBudget / 4)
            continue;
        inspectTail(reader, edge, dataset);
        inspectUpcast(reader, edge, dataset);
    }
}

} // namespace planish
