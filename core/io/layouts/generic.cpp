#include "core/io/layouts/generic.h"

#include <algorithm>

#include "core/io/layouts/array_form.h"
#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/number_decode.h"
#include "core/io/piece_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

/// How many arrays have the form, and why.
LayoutMatch matchOf(const FileStructure &structure, std::string_view key, double confidence)
{
    const FormContext context(structure);
    LayoutMatch match;
    std::size_t count = 0;
    std::size_t others = 0;
    bool assumed = false;
    for (const DatasetInfo &dataset : structure.datasets) {
        const ArrayForm form = context.formOf(dataset);
        if (form.key != key) {
            others += form.decided() ? 1 : 0;
            continue;
        }
        ++count;
        assumed = assumed || form.assumed;
        if (match.reason.empty())
            match.reason = form.reason;
    }
    if (count == 0)
        return {};
    match.reason = std::to_string(count) + (count == 1 ? " array: " : " arrays: ") + match.reason;
    // The form most arrays have names the file; one that only the names suggest is less sure.
    match.confidence =
        (confidence - (assumed ? 0.1 : 0.0)) * (0.5 + 0.5 * static_cast<double>(count) / static_cast<double>(count + others));
    return match;
}

std::optional<Axes> labelledAxes(ForeignReader &reader, const DatasetInfo &dataset)
{
    const std::string group(parentOf(dataset.path));
    for (const std::string_view name : {"axes", "dims", "axis_names"}) {
        const DatasetInfo *words = reader.find(group + "/" + std::string(name));
        if (words == nullptr || words->type != StoredType::Text)
            continue;
        const Expected<std::vector<std::string>> texts = reader.source().readText(*words);
        if (texts && texts->size() == dataset.shape.size())
            return axesByWords(*texts);
    }
    return std::nullopt;
}

/// True when the column is 0 or 1 in every row (a mask) and the next one holds whole numbers (ids).
bool columnsAreMaskAndId(const std::vector<double> &mask, const std::vector<double> &ids)
{
    const bool flags = std::all_of(mask.begin(), mask.end(), [](double v) { return v == 0.0 || v == 1.0; });
    const bool whole = std::all_of(ids.begin(), ids.end(), [](double v) {
        return v >= 0.0 && v < 1e7 && v == static_cast<double>(static_cast<std::int64_t>(v));
    });
    return flags && whole && !mask.empty();
}

std::vector<double> columnOf(ForeignReader &reader, const DatasetInfo &dataset, const Axes &axes, std::uint64_t column)
{
    DataPiece piece = pieceOf(dataset, axes);
    piece.firstColumn = column;
    const Expected<EdgeData> data = joinPieces({std::move(piece)}, 1);
    if (!data)
        return {};
    std::vector<double> values(static_cast<std::size_t>(data->dataset.shape[0]));
    std::vector<std::byte> bytes(values.size() * data->dataset.elementBytes);
    if (!readMatrixRows(reader.source(), *data, 0, data->dataset.shape[0], bytes))
        return {};
    widen(bytes, data->dataset.type, data->dataset.order, std::span<double>(values));
    return values;
}

/// [batch, tokens, K + 2]: split off when the values are those of a mask and of ids, and said aloud.
void addAppended(ForeignReader &reader, const DatasetInfo &dataset, const ArrayForm &form)
{
    const std::uint64_t channels = dataset.shape.back() - form.appended;
    const std::vector<double> mask = columnOf(reader, dataset, form.axes, channels);
    const std::vector<double> ids = columnOf(reader, dataset, form.axes, channels + 1);
    if (!columnsAreMaskAndId(mask, ids))
        return reader.addArray(dataset, form.axes);
    EdgeDraft draft;
    draft.path = dataset.path;
    draft.place = placeInName(dataset.path);
    draft.axes = axesText(form.axes) + " (columns 0 to " + std::to_string(channels - 1) + ")";
    draft.pieces.push_back(pieceOf(dataset, form.axes));
    draft.channels = channels;
    draft.rows = reader.rowsOf(dataset, form.axes);
    for (std::size_t row = 0; row < ids.size(); ++row)
        draft.rows.id[row] = static_cast<std::int32_t>(ids[row]);
    draft.rows.hasId = true;
    reader.applyMask(draft.rows, std::vector<std::int64_t>(mask.begin(), mask.end()),
                     dataset.path + " column " + std::to_string(channels));
    reader.note(printable(dataset.path) + ": columns " + std::to_string(channels) + " and " + std::to_string(channels + 1) +
                " look like a mask and token ids and are split off; to keep them as channels: --layout with " +
                layoutLine(dataset, form.axes));
    reader.addEdge(std::move(draft));
}

/// [layers + 1, …] of hidden states begins with the input of layer 0; the last is the input of the final norm.
bool isResidualStack(const DatasetInfo &dataset, const Axes &axes)
{
    return leafOf(dataset.path) == "hidden_states" && axes.size() == 4 && axes[0] == Axis::Layer;
}

void addStack(ForeignReader &reader, const DatasetInfo &dataset, const Axes &axes)
{
    if (!isResidualStack(dataset, axes))
        return reader.addArray(dataset, axes);
    const TokenTable rows = reader.rowsOf(dataset, axes);
    for (std::uint64_t layer = 0; layer < dataset.shape[0]; ++layer) {
        EdgeDraft draft;
        draft.path = dataset.path;
        draft.place.layer = static_cast<std::int64_t>(layer);
        draft.place.site = "residual";
        draft.axes = axesText(axes);
        draft.pieces.push_back(pieceOf(dataset, axes, layer));
        draft.channels = dataset.shape.back();
        draft.rows = rows;
        reader.addEdge(std::move(draft));
    }
    reader.note(printable(dataset.path) +
                ": read as hidden_states of transformers: entry l is the input of layer l, the last one the output "
                "of the last layer");
}

/// Rows behind the write index of a buffer were never written.
void addWithWriteIndex(ForeignReader &reader, const DatasetInfo &dataset, const Axes &axes)
{
    std::int64_t written = -1;
    for (const std::string &group : {std::string("/"), std::string(parentOf(dataset.path))}) {
        const auto found = reader.structure().groups.find(group);
        if (found != reader.structure().groups.end())
            written =
                std::max(written, AttributeReader(group, found->second, reader.result().info.notes).integer("write_index", -1));
    }
    written = std::max(written,
                       AttributeReader(dataset.path, dataset.attributes, reader.result().info.notes).integer("write_index", -1));
    if (written < 0 || axes[0] != Axis::Token || static_cast<std::uint64_t>(written) >= dataset.shape[0])
        return reader.addArray(dataset, axes);
    EdgeDraft draft;
    draft.path = dataset.path;
    draft.place = placeInName(dataset.path);
    draft.axes = axesText(axes);
    draft.pieces.push_back(pieceOf(dataset, axes));
    draft.channels = dataset.shape.back();
    draft.rows = reader.rowsOf(dataset, axes);
    for (std::size_t row = static_cast<std::size_t>(written); row < draft.rows.size(); ++row)
        draft.rows.mask[row] = 0;
    draft.rows.hasMask = true;
    reader.note(printable(dataset.path) + ": write_index is " + std::to_string(written) + " of " +
                std::to_string(dataset.shape[0]) + " rows; the rest is left out of every statistic");
    reader.addEdge(std::move(draft));
}

void addOne(ForeignReader &reader, const DatasetInfo &listed, const ArrayForm &form)
{
    const DatasetInfo dataset = withStoredDtype(listed, reader.result().info.notes);
    if (form.key == "labelled_axes" && !form.decided()) {
        if (const std::optional<Axes> axes = labelledAxes(reader, dataset))
            return reader.addArray(dataset, *axes);
        return reader.refuse(dataset.path,
                             "the names of its axes are not known; expected batch, layer, token, head, head_dim or channel");
    }
    if (form.assumed)
        reader.note(printable(dataset.path) + ": read as [tokens, channels]: no weight and no attribute states the width");
    if (form.appended > 0)
        return addAppended(reader, dataset, form);
    if (form.axes.size() == 2)
        return addWithWriteIndex(reader, dataset, form.axes);
    return addStack(reader, dataset, form.axes);
}

/// Weights beside the activations: the side of an edge's width is the input; a square one is not decided by width.
void addWeights(ForeignReader &reader)
{
    std::set<std::uint64_t> widths;
    for (const DumpEdge &edge : reader.result().info.edges)
        widths.insert(edge.channels);
    for (const DatasetInfo &listed : reader.structure().datasets) {
        const DatasetInfo dataset = withStoredDtype(listed, reader.result().info.notes);
        if (!namesWeight(dataset.path) || dataset.shape.size() != 2 || !isActivationType(dataset.type))
            continue;
        const bool first = widths.count(dataset.shape[0]) > 0;
        const bool last = widths.count(dataset.shape[1]) > 0;
        if (dataset.path.ends_with("weight"))
            reader.addWeight(dataset, {Axis::Output, Axis::Channel}, weightNameOf(dataset.path));
        else if (first != last && dataset.shape[0] != dataset.shape[1])
            reader.addWeight(dataset, last ? Axes{Axis::Output, Axis::Channel} : Axes{Axis::Channel, Axis::Output},
                             weightNameOf(dataset.path));
        else
            reader.refuse(dataset.path, "orientation undecided: " + shapeText(dataset.shape) +
                                            " may be [out, in] or [in, out]; expected a --layout "
                                            "FILE.yaml with " +
                                            layoutLine(dataset, {Axis::Output, Axis::Channel}) + " or " +
                                            layoutLine(dataset, {Axis::Channel, Axis::Output}));
    }
}

} // namespace

LayoutMatch recognisePerLayer(const FileStructure &structure)
{
    return matchOf(structure, "per_layer_2d", 0.8);
}
LayoutMatch recognisePerLayerDotted(const FileStructure &structure)
{
    return matchOf(structure, "per_layer_2d_dotted", 0.85);
}
LayoutMatch recogniseTransposed(const FileStructure &structure)
{
    return matchOf(structure, "transposed", 0.8);
}
LayoutMatch recogniseLayersFirst(const FileStructure &structure)
{
    return matchOf(structure, "stacked_layers_first", 0.85);
}
LayoutMatch recogniseLayersMiddle(const FileStructure &structure)
{
    return matchOf(structure, "stacked_layers_middle", 0.85);
}
LayoutMatch recogniseBatchSeq(const FileStructure &structure)
{
    return matchOf(structure, "batch_seq_k", 0.8);
}
LayoutMatch recogniseHeads(const FileStructure &structure)
{
    return matchOf(structure, "heads_4d", 0.8);
}
LayoutMatch recogniseAppendedColumns(const FileStructure &structure)
{
    return matchOf(structure, "appended_columns", 0.8);
}
LayoutMatch recogniseLabelledAxes(const FileStructure &structure)
{
    return matchOf(structure, "labelled_axes", 0.9);
}
LayoutMatch recogniseAmbiguous(const FileStructure &structure)
{
    LayoutMatch match = matchOf(structure, "ambiguous", 0.2);
    if (match.confidence > 0.0)
        match = {0.1, "arrays whose axes nothing decides"};
    return match;
}

Expected<void> addArrays(ForeignReader &reader)
{
    const FormContext context(reader.structure());
    std::string open;
    std::string openPath;
    for (const DatasetInfo &dataset : reader.structure().datasets) {
        const ArrayForm form = context.formOf(dataset);
        if (form.key.empty())
            continue;
        if (form.readings.empty()) {
            addOne(reader, dataset, form);
            continue;
        }
        const std::string text = undecidedText(dataset, form);
        reader.refuse(dataset.path, text);
        if (open.empty()) {
            open = text;
            openPath = dataset.path;
        }
    }
    if (reader.result().edges.empty() && !open.empty()) {
        const std::size_t cut = open.find("; expected ");
        return refusal(reader.structure().file + ":" + printable(openPath), open.substr(0, cut), open.substr(cut + 11),
                       "axesUndecided");
    }
    addWeights(reader);
    return {};
}

Expected<LayoutResult> readArrays(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    if (Expected<void> added = addArrays(reader); !added)
        return tl::make_unexpected(added.error());
    return reader.finish();
}

} // namespace planish
