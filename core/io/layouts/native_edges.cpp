// The edges of a native dump: shape, type and attributes checked one by one; a bad one is refused by path and the rest stays.
#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/native_parts.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::string_view kEdges = "/edges/";

/// Order of the data through a block; unknown sites come last.
constexpr std::array<std::string_view, 12> kSites{"residual", "attn_in",  "q_pre",  "k_pre",    "q_post", "k_post",
                                                  "v",        "attn_out", "mlp_in", "mlp_down", "head",   "other"};

std::size_t siteRank(std::string_view site)
{
    return static_cast<std::size_t>(std::find(kSites.begin(), kSites.end(), site) - kSites.begin());
}

/// Why these numbers cannot be an edge; empty if they can.
std::string typeRefusal(const DatasetInfo &dataset)
{
    switch (dataset.type) {
    case StoredType::I16:
    case StoredType::U16:
        return "16-bit integers without a dtype: bfloat16 or float16? (attribute stored_dtype)";
    case StoredType::I8:
    case StoredType::U8:
        return "8-bit integers without a dtype: float8_e4m3fn or float8_e5m2? (attribute stored_dtype)";
    case StoredType::F16:
    case StoredType::Bf16:
    case StoredType::F32:
    case StoredType::F64:
    case StoredType::Fp8E4M3:
    case StoredType::Fp8E5M2:
    case StoredType::Fp8E4M3Fnuz:
    case StoredType::Fp8E5M2Fnuz:
        return {};
    default:
        return "type " + dataset.typeText + " is no activation; expected float16, bfloat16, float32 or float64";
    }
}

std::string shapeRefusal(const DatasetInfo &dataset)
{
    const std::string shape = "shape " + shapeText(dataset.shape);
    if (dataset.shape.size() != 2)
        return shape + " has rank " + std::to_string(dataset.shape.size()) + "; expected [rows, channels]";
    if (dataset.shape[0] == 0 || dataset.shape[1] == 0)
        return shape + " is empty: zero " + (dataset.shape[0] == 0 ? "rows" : "channels");
    constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;
    if (dataset.shape[0] >= kMostRows)
        return shape + " has too many rows; at most 2^31 - 1 are read";
    return {};
}

/// "layers.2.attn_in" states layer and site in its name.
void siteFromName(const std::string &name, DumpEdge &edge)
{
    constexpr std::string_view kLayers = "layers.";
    if (!name.starts_with(kLayers))
        return;
    const char *end = name.data() + name.size();
    std::int64_t layer = -1;
    const auto [rest, failed] = std::from_chars(name.data() + kLayers.size(), end, layer);
    if (failed != std::errc() || rest == end || *rest != '.')
        return;
    if (edge.layer < 0)
        edge.layer = layer;
    const std::string_view site(rest + 1, static_cast<std::size_t>(end - rest - 1));
    if (edge.site.empty() && siteRank(site) < kSites.size())
        edge.site = site;
}

/// `/rows/<edge>`: false when it contradicts the edge.
bool readRowTable(NativeReader &reader, DumpEdge &edge)
{
    const std::string path = "/rows/" + edge.id.value;
    const DatasetInfo *dataset = reader.structure.find(path);
    if (dataset == nullptr)
        return true;
    const std::vector<std::int64_t> rows = readIntegers(reader, *dataset);
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    const bool inRange = std::all_of(rows.begin(), rows.end(), [](std::int64_t row) { return row >= 0 && row < kMost; });
    if (rows.size() != edge.rows || !inRange) {
        reader.refuse(edge.path, path + " has " + std::to_string(rows.size()) + " entries" +
                                     (inRange ? "" : ", some negative or too large,") + " for " + std::to_string(edge.rows) +
                                     " rows");
        return false;
    }
    edge.rowToToken.assign(rows.begin(), rows.end());
    return true;
}

void readAttributesOf(NativeReader &reader, const DatasetInfo &dataset, DumpEdge &edge)
{
    const AttributeReader attributes(edge.path, dataset.attributes, reader.result.info.notes);
    edge.layer = attributes.integer("layer", -1);
    edge.site = attributes.text("site");
    edge.producer = attributes.text("producer");
    if (edge.producer == "residual")
        edge.producer = "stream:residual"; // older files
    edge.consumers = attributes.texts("consumers");
    edge.basis = attributes.text("basis", reader.result.info.model.baseBasis);
    edge.heads = attributes.integer("heads", 0);
    siteFromName(edge.id.value, edge);
    if (edge.site.empty())
        edge.site = "other";
    if (attributes.has("scale"))
        reader.note(printable(edge.path) + ": attribute scale is not applied, numbers are as stored");
}

std::string axisRefusal(const DatasetInfo &dataset)
{
    const auto found = dataset.attributes.find("axis");
    const auto *text = found == dataset.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
    if (text == nullptr || *text == "channel last")
        return {};
    return "axis says '" + printable(*text) + "': the channels are not the last axis; expected 'channel last' or a --layout file";
}

void readEdge(NativeReader &reader, const NamedDataset &named)
{
    const std::string path = std::string(kEdges) + named.name;
    DatasetInfo dataset = withStoredDtype(*named.dataset, reader.result.info.notes);
    for (const std::string &refusal : {typeRefusal(dataset), shapeRefusal(dataset), axisRefusal(dataset)})
        if (!refusal.empty())
            return reader.refuse(path, refusal);
    DumpEdge edge;
    edge.id = EdgeId{named.name};
    edge.path = path;
    edge.storedType = dataset.type;
    edge.rows = dataset.shape[0];
    edge.channels = dataset.shape[1];
    readAttributesOf(reader, dataset, edge);
    if (!readRowTable(reader, edge))
        return;
    reader.result.edges.insert_or_assign(named.name, EdgeData{std::move(dataset)});
    reader.result.info.edges.push_back(std::move(edge));
}

} // namespace

void readNativeEdges(NativeReader &reader)
{
    for (const NamedDataset &named : datasetsBelow(reader.structure, kEdges))
        readEdge(reader, named);
    std::vector<DumpEdge> &edges = reader.result.info.edges;
    std::stable_sort(edges.begin(), edges.end(), [](const DumpEdge &a, const DumpEdge &b) {
        // Edges of no layer stand behind those of the layers.
        return std::tuple(a.layer < 0, a.layer, siteRank(a.site), a.id.value) <
               std::tuple(b.layer < 0, b.layer, siteRank(b.site), b.id.value);
    });
}

} // namespace planish
