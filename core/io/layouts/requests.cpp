#include "core/io/layouts/requests.h"

#include <algorithm>
#include <map>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/printable.h"

namespace planish {

namespace {

bool isPhase(std::string_view leaf)
{
    return leaf == "prefill" || leaf == "decode";
}

/// "/requests/ID/layers.2/prefill": the pattern of the edge and the request it belongs to.
struct PhasePath {
    std::string pattern, request;
};

PhasePath phasePath(const std::string &path)
{
    const std::string parent(parentOf(path));
    // The part that names the layer closes the request; what stands before it is the request's own.
    std::size_t begin = 0;
    while (begin < parent.size()) {
        const std::size_t end = std::min(parent.find('/', begin + 1), parent.size());
        if (placeInName(parent.substr(begin, end - begin)).layer >= 0)
            break;
        begin = end;
    }
    const std::string before = parent.substr(0, begin);
    return {std::string(parentOf(before)) + "/*" + parent.substr(begin), before};
}

struct Phased {
    std::string request;
    const DatasetInfo *prefill = nullptr, *decode = nullptr;
};

/// [P, K] or [D, 1, K]: axes of length 1 between tokens and channels.
std::optional<Axes> phaseAxes(const DatasetInfo &dataset)
{
    if (dataset.shape.size() == 2)
        return Axes{Axis::Token, Axis::Channel};
    if (dataset.shape.size() == 3 && (dataset.shape[1] == 1 || dataset.shape[0] == 1))
        return Axes{Axis::Token, Axis::Token, Axis::Channel};
    return std::nullopt;
}

void addPhase(ForeignReader &reader, EdgeDraft &draft, const DatasetInfo *listed, std::int32_t request, std::uint8_t phase)
{
    if (listed == nullptr)
        return;
    const DatasetInfo dataset = withStoredDtype(*listed, reader.result().info.notes);
    const std::optional<Axes> axes = phaseAxes(dataset);
    if (!axes || !isActivationType(dataset.type))
        return reader.refuse(dataset.path,
                             dataset.typeText + " " + shapeText(dataset.shape) + " is no [tokens, K] or [tokens, 1, K]");
    const DataPiece piece = pieceOf(dataset, *axes);
    TokenTable rows = plainRows(piece.rows());
    // Decoding goes on where the prompt ended.
    const auto first = static_cast<std::int32_t>(std::count(draft.rows.request.begin(), draft.rows.request.end(), request));
    for (std::int32_t &position : rows.position)
        position += first;
    std::fill(rows.request.begin(), rows.request.end(), request);
    std::fill(rows.phase.begin(), rows.phase.end(), phase);
    rows.hasRequest = rows.hasPosition = rows.hasPhase = true;
    appendRows(draft.rows, rows);
    draft.pieces.push_back(piece);
}

bool isVariableNumbers(const DatasetInfo &dataset)
{
    return dataset.typeText.starts_with("variable-length rows of");
}

} // namespace

LayoutMatch recognisePhases(const FileStructure &structure)
{
    for (const DatasetInfo &dataset : structure.datasets)
        if (isPhase(leafOf(dataset.path)) && placeInName(dataset.path).layer >= 0 && dataset.shape.size() >= 2)
            return {0.92, "datasets prefill and decode below one group per request and layer"};
    return {};
}

Expected<LayoutResult> readPhases(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    std::map<std::string, std::vector<Phased>> edges;
    std::map<std::string, std::int32_t> requests;
    for (const DatasetInfo &dataset : structure.datasets) {
        if (!isPhase(leafOf(dataset.path)))
            continue;
        const PhasePath path = phasePath(dataset.path);
        requests.emplace(path.request, 0);
        std::vector<Phased> &list = edges[path.pattern];
        auto own = std::find_if(list.begin(), list.end(), [&](const Phased &p) { return p.request == path.request; });
        if (own == list.end())
            own = list.insert(list.end(), Phased{path.request, nullptr, nullptr});
        (leafOf(dataset.path) == "prefill" ? own->prefill : own->decode) = &dataset;
    }
    std::int32_t next = 0;
    for (auto &[name, number] : requests)
        number = next++;
    for (auto &[pattern, list] : edges) {
        std::sort(list.begin(), list.end(), [](const Phased &a, const Phased &b) { return a.request < b.request; });
        EdgeDraft draft;
        draft.path = pattern;
        draft.place = placeInName(pattern);
        draft.axes = "request, token, channel";
        for (const Phased &phased : list) {
            addPhase(reader, draft, phased.prefill, requests[phased.request], 0);
            addPhase(reader, draft, phased.decode, requests[phased.request], 1);
        }
        draft.channels = draft.pieces.empty() ? 0 : draft.pieces.front().columns();
        reader.addEdge(std::move(draft));
    }
    return reader.finish();
}

LayoutMatch recogniseOffsets(const FileStructure &structure)
{
    for (const DatasetInfo &dataset : structure.datasets)
        if (leafOf(dataset.path) == "offsets" && dataset.shape.size() == 1 &&
            structure.find(std::string(parentOf(dataset.path)) + "/values") != nullptr)
            return {0.92, "values beside offsets: ragged requests, one behind the other"};
    return {};
}

Expected<LayoutResult> readOffsets(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    for (const DatasetInfo &listed : structure.datasets) {
        const std::string group(parentOf(listed.path));
        const DatasetInfo *offsets = reader.find(group + "/offsets");
        if (leafOf(listed.path) != "values" || offsets == nullptr)
            continue;
        const DatasetInfo dataset = withStoredDtype(listed, reader.result().info.notes);
        const std::vector<std::int64_t> begins = reader.integers(*offsets);
        const bool fits = dataset.shape.size() == 2 && isActivationType(dataset.type) && begins.size() > 1 &&
                          begins.front() == 0 && begins.back() == static_cast<std::int64_t>(dataset.shape[0]) &&
                          std::is_sorted(begins.begin(), begins.end());
        if (!fits) {
            reader.refuse(dataset.path, "offsets do not rise from 0 to the number of rows of " + shapeText(dataset.shape));
            continue;
        }
        EdgeDraft draft;
        draft.path = dataset.path;
        draft.place = placeInName(group);
        draft.axes = "token, channel (requests by offsets)";
        draft.pieces.push_back(pieceOf(dataset, {Axis::Token, Axis::Channel}));
        draft.channels = dataset.shape[1];
        for (std::size_t request = 0; request + 1 < begins.size(); ++request) {
            TokenTable rows = plainRows(static_cast<std::uint64_t>(begins[request + 1] - begins[request]));
            std::fill(rows.request.begin(), rows.request.end(), static_cast<std::int32_t>(request));
            rows.hasRequest = rows.hasPosition = true;
            appendRows(draft.rows, rows);
        }
        reader.addEdge(std::move(draft));
    }
    return reader.finish();
}

LayoutMatch recogniseVariableLength(const FileStructure &structure)
{
    for (const DatasetInfo &dataset : structure.datasets)
        if (isVariableNumbers(dataset))
            return {0.6, printable(dataset.path) + " holds variable-length rows"};
    for (const RefusedObject &object : structure.refused)
        if (object.reason.find("variable-length") != std::string::npos)
            return {0.6, printable(object.path) + " holds variable-length rows"};
    return {};
}

Expected<LayoutResult> readVariableLength(const FileStructure &structure, BlockSource &)
{
    for (const DatasetInfo &dataset : structure.datasets)
        if (isVariableNumbers(dataset))
            return dataError(structure.file + ":" + printable(dataset.path),
                             "holds " + dataset.typeText +
                                 ": each row is one request of variable length and its shape is not stored",
                             "values with offsets, or one dataset per request");
    return dataError(structure.file, "holds variable-length rows whose shape is not stored",
                     "values with offsets, or one dataset per request");
}

} // namespace planish
