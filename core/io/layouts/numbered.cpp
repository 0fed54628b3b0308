// One group per sample, one vector per prompt, one dataset per sentence: siblings whose names differ by a number.
#include <algorithm>
#include <map>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/requests.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/printable.h"

namespace planish {

namespace {

/// "/sample_12/hidden_states": the pattern all samples share, and which one it is.
struct NumberedPath {
    std::string pattern; ///< "/sample_*/hidden_states"
    std::int64_t number = -1;
};

NumberedPath numberedPath(const std::string &path)
{
    const std::size_t end = path.find('/', 1);
    const NumberedName first = numberedName(std::string_view(path).substr(1, end == std::string::npos ? end : end - 1));
    if (first.number < 0)
        return {};
    // "layer_3" numbers layers, not samples.
    const std::string stem = first.stem;
    if (stem.starts_with("layer") || stem.starts_with("block") || stem == "l" || stem == "h")
        return {};
    const bool dataset = end == std::string::npos;
    if (dataset && !stem.empty() && stem != "sentence_" && stem != "sample_" && stem != "prompt_" && stem != "request_")
        return {};
    return {"/" + stem + "*" + (dataset ? "" : path.substr(end)), first.number};
}

struct Sample {
    std::int64_t number = 0;
    const DatasetInfo *dataset = nullptr;
};
using Samples = std::map<std::string, std::vector<Sample>>;

/// Arrays of one pattern and rank, in the order of their numbers.
Samples samplesOf(const FileStructure &structure)
{
    Samples samples;
    for (const DatasetInfo &dataset : structure.datasets) {
        const NumberedPath path = numberedPath(dataset.path);
        if (path.number >= 0 && isActivationType(dataset.type) && !dataset.shape.empty() && !namesWeight(dataset.path))
            samples[path.pattern].push_back({path.number, &dataset});
    }
    for (auto &[pattern, list] : samples)
        std::sort(list.begin(), list.end(), [](const Sample &a, const Sample &b) { return a.number < b.number; });
    std::erase_if(samples, [](const auto &entry) { return entry.second.size() < 2; });
    return samples;
}

LayoutMatch matchOf(const FileStructure &structure, std::size_t rankFrom, std::size_t rankTo, bool groups,
                    const std::string &what)
{
    for (const auto &[pattern, list] : samplesOf(structure)) {
        const std::size_t rank = list.front().dataset->shape.size();
        const bool inGroup = pattern.find('/', 1) != std::string::npos;
        if (rank >= rankFrom && rank <= rankTo && inGroup == groups)
            return {0.9, std::to_string(list.size()) + " of " + printable(pattern) + ": " + what};
    }
    return {};
}

/// Axes of one sample: a mask or ids beside it fit the token axis; without them layers come first.
Axes axesOf(ForeignReader &reader, const std::vector<Sample> &samples)
{
    const DatasetInfo &first = *samples.front().dataset;
    if (first.shape.size() == 1)
        return {Axis::Channel};
    if (first.shape.size() == 2)
        return {Axis::Token, Axis::Channel};
    if (first.shape.size() != 3)
        return {};
    const auto differs = [&](std::size_t axis) {
        return std::any_of(samples.begin(), samples.end(), [&](const Sample &sample) {
            return sample.dataset->shape.size() == 3 && sample.dataset->shape[axis] != first.shape[axis];
        });
    };
    // The number of tokens is what differs between samples, or what a mask beside them counts.
    const auto side = [&](std::size_t axis) {
        return reader.beside(first.path, {"mask", "attention_mask", "input_ids", "token_ids"}, first.shape[axis], false) !=
               nullptr;
    };
    const bool tokensFirst = differs(0) || (side(0) && !side(1));
    const bool tokensSecond = differs(1) || (side(1) && !side(0));
    if (tokensFirst == tokensSecond)
        return {};
    return tokensSecond ? Axes{Axis::Layer, Axis::Token, Axis::Channel} : Axes{Axis::Token, Axis::Layer, Axis::Channel};
}

void addPattern(ForeignReader &reader, const std::string &pattern, const std::vector<Sample> &samples)
{
    const Axes axes = axesOf(reader, samples);
    if (axes.empty())
        return reader.refuse(pattern,
                             "axes undecided: " + shapeText(samples.front().dataset->shape) +
                                 " may be [layer, token, channel] or [token, layer, channel]; expected samples of different "
                                 "lengths, a mask beside them, or a --layout file");
    const auto layerAxis = std::find(axes.begin(), axes.end(), Axis::Layer);
    const auto at = static_cast<std::size_t>(layerAxis - axes.begin());
    const std::uint64_t layers = layerAxis == axes.end() ? 1 : samples.front().dataset->shape[at];
    TokenTable rows;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples[i].dataset->shape.size() != axes.size() ||
            (layerAxis != axes.end() && samples[i].dataset->shape[at] != layers))
            return reader.refuse(pattern, printable(samples[i].dataset->path) + " has shape " +
                                              shapeText(samples[i].dataset->shape) + "; expected that of " +
                                              printable(samples.front().dataset->path));
        TokenTable own = reader.rowsOf(*samples[i].dataset, axes, false);
        std::fill(own.request.begin(), own.request.end(), static_cast<std::int32_t>(i));
        own.hasRequest = true;
        appendRows(rows, own);
    }
    for (std::uint64_t layer = 0; layer < layers; ++layer) {
        EdgeDraft draft;
        draft.path = pattern;
        draft.place = placeInName(pattern);
        if (layerAxis != axes.end())
            draft.place.layer = static_cast<std::int64_t>(layer);
        draft.axes = (axes.size() == 1 ? "prompt, " : "") + axesText(axes);
        for (const Sample &sample : samples)
            draft.pieces.push_back(pieceOf(withStoredDtype(*sample.dataset, reader.result().info.notes), axes, layer));
        draft.channels = draft.pieces.front().columns();
        draft.rows = rows;
        reader.addEdge(std::move(draft));
    }
}

} // namespace

LayoutMatch recogniseSampleGroups(const FileStructure &structure)
{
    return matchOf(structure, 2, 3, true, "one group per sample");
}
LayoutMatch recognisePromptVectors(const FileStructure &structure)
{
    return matchOf(structure, 1, 1, true, "one vector per prompt and layer");
}
LayoutMatch recogniseSentences(const FileStructure &structure)
{
    return matchOf(structure, 2, 3, false, "one dataset per sentence");
}

Expected<LayoutResult> readNumbered(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    for (const auto &[pattern, samples] : samplesOf(structure))
        addPattern(reader, pattern, samples);
    if (reader.result().edges.empty() && !reader.result().info.refused.empty())
        return dataError(structure.file + ":" + printable(reader.result().info.refused.back().path),
                         reader.result().info.refused.back().reason, "samples that can be joined");
    return reader.finish();
}

} // namespace planish
