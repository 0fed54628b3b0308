#include "core/io/layouts/foreign_reader.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/native_parts.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/number_decode.h"
#include "core/io/piece_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

std::uint64_t elementsOf(const DatasetInfo &dataset)
{
    std::uint64_t count = 0;
    return productFits(dataset.shape, UINT64_MAX, &count) ? count : 0;
}

/// [outputs, channels] of a weight with heads in several axes.
Axes rowsAndChannels(const Axes &axes)
{
    Axes out = axes;
    for (Axis &axis : out)
        if (axis == Axis::Output)
            axis = Axis::Token;
    return out;
}

} // namespace

bool isActivationType(StoredType type)
{
    switch (type) {
    case StoredType::F16:
    case StoredType::Bf16:
    case StoredType::F32:
    case StoredType::F64:
    case StoredType::Fp8E4M3:
    case StoredType::Fp8E5M2:
    case StoredType::Fp8E4M3Fnuz:
    case StoredType::Fp8E5M2Fnuz:
        return true;
    default:
        return false;
    }
}

ForeignReader::ForeignReader(const FileStructure &structure, BlockSource &source) : m_structure(structure), m_source(source)
{
    m_result.info.refused = structure.refused;
    m_result.info.notes = structure.notes;
    for (const DatasetInfo &dataset : structure.datasets)
        m_byPath.emplace(dataset.path, &dataset);
}

const DatasetInfo *ForeignReader::find(const std::string &path) const
{
    const auto found = m_byPath.find(path);
    return found == m_byPath.end() ? nullptr : found->second;
}

const DatasetInfo *ForeignReader::beside(const std::string &path, std::initializer_list<std::string_view> names,
                                         std::uint64_t count, bool outwards) const
{
    std::string group(parentOf(path));
    while (true) {
        for (const std::string_view name : names) {
            const DatasetInfo *found = find(group + "/" + std::string(name));
            if (found != nullptr && elementsOf(*found) == count && isNumeric(found->type) && !isActivationType(found->type))
                return found;
        }
        if (!outwards || group.empty())
            return nullptr;
        group = std::string(parentOf(group));
    }
}

std::vector<double> ForeignReader::numbers(const DatasetInfo &dataset)
{
    Expected<std::vector<double>> values = readNumbers(m_source, dataset);
    if (values)
        return std::move(*values);
    note(printable(dataset.path) + ": not used (" + values.error().what + ")");
    return {};
}

std::vector<std::int64_t> ForeignReader::integers(const DatasetInfo &dataset)
{
    constexpr double kLimit = 9007199254740992.0;
    std::vector<std::int64_t> out;
    for (const double value : numbers(dataset))
        out.push_back(value > -kLimit && value < kLimit ? static_cast<std::int64_t>(value) : 0);
    return out;
}

std::string ForeignReader::freeId(const EdgeDraft &draft) const
{
    const auto isFree = [&](const std::string &id) { return m_result.edges.count(id) == 0; };
    const PlaceInName &place = draft.place;
    if (place.layer >= 0) {
        const std::string layer = "layers." + std::to_string(place.layer) + ".";
        for (const std::string &name : {place.site, place.rest, std::string("other")})
            if (!name.empty() && isFree(layer + name))
                return layer + name;
    }
    std::string id = draft.path.starts_with("/") ? draft.path.substr(1) : draft.path;
    std::replace(id.begin(), id.end(), '/', '.');
    if (place.layer >= 0 && placeInName(draft.path).layer < 0)
        id += ".layer_" + std::to_string(place.layer);
    const std::string plain = id;
    for (int next = 2; !isFree(id); ++next)
        id = plain + "." + std::to_string(next);
    return id;
}

void ForeignReader::addEdge(EdgeDraft draft)
{
    if (draft.pieces.empty())
        return;
    Expected<EdgeData> data = joinPieces(std::move(draft.pieces), draft.channels);
    if (!data)
        return refuse(draft.path, data.error().subject + " " + data.error().what + "; expected " + data.error().expected);
    constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;
    const std::vector<std::uint64_t> &shape = data->dataset.shape;
    if (shape[0] == 0 || shape[1] == 0 || shape[0] >= kMostRows)
        return refuse(draft.path, "makes " + shapeText(shape) + "; expected at least one row and one channel, below 2^31 rows");
    DumpEdge edge;
    edge.id = EdgeId{freeId(draft)};
    edge.path = draft.path;
    edge.layer = draft.place.layer;
    edge.site = draft.place.site.empty() ? "other" : draft.place.site;
    edge.producer = edge.site == "residual" ? "stream:residual" : "";
    edge.consumers = std::move(draft.consumers);
    edge.storedType = data->dataset.type;
    edge.rows = shape[0];
    edge.channels = shape[1];
    edge.axes = draft.axes;
    edge.heads = draft.heads;
    draft.rows.unit = "token";
    placeRows(edge, std::move(draft.rows));
    m_result.edges.insert_or_assign(edge.id.value, std::move(*data));
    inspectTail(edge);
    m_result.info.edges.push_back(std::move(edge));
}

void ForeignReader::addArray(const DatasetInfo &listed, const Axes &axes, const std::vector<std::int64_t> &layers, bool outwards)
{
    const DatasetInfo dataset = withStoredDtype(listed, m_result.info.notes);
    if (!isActivationType(dataset.type))
        return refuse(dataset.path,
                      "type " + dataset.typeText + " is no activation; expected float16, bfloat16, float32 or float64");
    const auto layerAxis = std::find(axes.begin(), axes.end(), Axis::Layer);
    const auto headAxis = std::find(axes.begin(), axes.end(), Axis::Head);
    const std::uint64_t count = layerAxis == axes.end() ? 1 : dataset.shape[static_cast<std::size_t>(layerAxis - axes.begin())];
    const TokenTable rows = rowsOf(dataset, axes, outwards);
    for (std::uint64_t layer = 0; layer < count; ++layer) {
        EdgeDraft draft;
        draft.path = dataset.path;
        draft.place = placeInName(dataset.path);
        if (layerAxis != axes.end())
            draft.place.layer = layer < layers.size() ? layers[layer] : static_cast<std::int64_t>(layer);
        draft.axes = axesText(axes);
        draft.pieces.push_back(pieceOf(dataset, axes, layer));
        draft.channels = draft.pieces[0].columns();
        draft.heads = headAxis == axes.end()
                          ? 0
                          : static_cast<std::int64_t>(dataset.shape[static_cast<std::size_t>(headAxis - axes.begin())]);
        draft.rows = rows;
        addEdge(std::move(draft));
    }
}

void ForeignReader::addWeight(const DatasetInfo &dataset, const Axes &axes, const std::string &name, const std::string &bias,
                              std::int64_t rowBegin, std::int64_t rowEnd)
{
    if (!isNumeric(dataset.type) || dataset.shape.size() != axes.size())
        return refuse(dataset.path, dataset.typeText + " " + shapeText(dataset.shape) + " is no weight");
    TensorEntry entry{TensorName{name}, dataset.path, m_structure.file, dataset.shape, dataset.type, bias};
    entry.rowBegin = rowBegin;
    entry.rowEnd = rowEnd;
    if (axes.size() == 2) {
        entry.transposed = axes[0] == Axis::Channel;
        m_result.tensors.insert_or_assign(dataset.path, dataset);
    } else {
        DataPiece piece = pieceOf(dataset, rowsAndChannels(axes));
        const std::uint64_t columns = piece.columns();
        Expected<EdgeData> data = joinPieces({std::move(piece)}, columns);
        if (!data)
            return refuse(dataset.path, data.error().what);
        entry.shape = data->dataset.shape;
        m_result.arranged.insert_or_assign(dataset.path, std::move(*data));
    }
    m_result.info.weights.push_back(std::move(entry));
}

void ForeignReader::addBias(const DatasetInfo &dataset, const std::string &name)
{
    if (!isNumeric(dataset.type) || dataset.shape.empty())
        return;
    m_result.tensors.insert_or_assign(dataset.path, dataset);
    m_result.info.biases.push_back({TensorName{name}, dataset.path, m_structure.file, dataset.shape, dataset.type, {}});
}

void ForeignReader::addNorm(const DatasetInfo &gain, const DatasetInfo *bias, const std::string &name)
{
    NormParameters norm;
    norm.kind = bias != nullptr ? "layernorm" : "rmsnorm";
    norm.gain = numbers(gain);
    if (bias != nullptr && bias->shape == gain.shape)
        norm.bias = numbers(*bias);
    if (!norm.gain.empty())
        m_result.info.norms.emplace(name, std::move(norm));
}

LayoutResult ForeignReader::finish()
{
    std::vector<DumpEdge> &edges = m_result.info.edges;
    std::stable_sort(edges.begin(), edges.end(), [](const DumpEdge &a, const DumpEdge &b) {
        return std::tuple(a.layer < 0, a.layer) < std::tuple(b.layer < 0, b.layer);
    });
    std::set<std::string> said;
    std::erase_if(m_result.info.notes, [&](const std::string &note) { return !said.insert(note).second; });
    return std::move(m_result);
}

} // namespace planish
