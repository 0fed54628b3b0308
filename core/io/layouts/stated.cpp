#include "core/io/layouts/stated.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/nearest.h"
#include "core/io/number_decode.h"
#include "core/io/piece_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

struct StatedDataset {
    std::string path, mask;
    std::vector<std::string> axes;
    std::uint64_t channels = 0; ///< of `split`; 0: all
    std::int64_t maskColumn = -1, idColumn = -1;
};

/// `[576, mask, id]`: how many columns are channels, and what the columns behind them are.
void readSplit(const YAML::Node &split, StatedDataset &out)
{
    std::int64_t column = 0;
    for (const YAML::Node &item : split) {
        const auto word = item.as<std::string>();
        if (word == "mask")
            out.maskColumn = column++;
        else if (word == "id")
            out.idColumn = column++;
        else if (column == 0)
            out.channels = static_cast<std::uint64_t>(column = item.as<std::int64_t>());
        else
            throw YAML::Exception(item.Mark(), "split is [channels, mask, id]");
    }
}

Expected<std::vector<StatedDataset>> parse(const std::string &file)
{
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored) || std::filesystem::file_size(file, ignored) > (1U << 20))
        return usageError(file, "cannot be read as a layout file", "a YAML file below 1 MiB with the key datasets");
    std::vector<StatedDataset> out;
    try {
        const YAML::Node root = YAML::LoadFile(file);
        if (!root.IsMap() || !root["datasets"] || !root["datasets"].IsSequence())
            return usageError(file, "has no list of datasets", "datasets: [{path: /a, axes: [token, channel]}]");
        for (const YAML::Node &item : root["datasets"]) {
            StatedDataset stated;
            for (const auto &entry : item) {
                const auto key = entry.first.as<std::string>();
                if (key != "path" && key != "axes" && key != "split" && key != "mask")
                    return usageError(file, "has the unknown key '" + printable(key) + "'", "path, axes, split, mask");
            }
            stated.path = item["path"].as<std::string>();
            stated.axes = item["axes"].as<std::vector<std::string>>();
            if (item["mask"])
                stated.mask = item["mask"].as<std::string>();
            if (item["split"])
                readSplit(item["split"], stated);
            out.push_back(std::move(stated));
        }
    } catch (const YAML::Exception &error) {
        return usageError(file, std::string("is no layout file (") + error.what() + ")",
                          "datasets: [{path: /a, axes: [token, channel]}]");
    }
    return out;
}

std::vector<double> columnOf(ForeignReader &reader, const DatasetInfo &dataset, const Axes &axes, std::int64_t column)
{
    DataPiece piece = pieceOf(dataset, axes);
    piece.firstColumn = static_cast<std::uint64_t>(column);
    const Expected<EdgeData> data = joinPieces({std::move(piece)}, 1);
    if (column < 0 || !data)
        return {};
    std::vector<std::byte> bytes(static_cast<std::size_t>(data->dataset.shape[0]) * data->dataset.elementBytes);
    if (!readMatrixRows(reader.source(), *data, 0, data->dataset.shape[0], bytes))
        return {};
    std::vector<double> values(static_cast<std::size_t>(data->dataset.shape[0]));
    widen(bytes, data->dataset.type, data->dataset.order, std::span<double>(values));
    return values;
}

Expected<TokenTable> rowsOf(ForeignReader &reader, const StatedDataset &stated, const DatasetInfo &dataset, const Axes &axes)
{
    TokenTable rows = reader.rowsOf(dataset, axes);
    std::vector<std::int64_t> mask;
    if (!stated.mask.empty()) {
        const DatasetInfo *found = reader.find(stated.mask);
        if (found == nullptr)
            return dataError(reader.structure().file + ":" + printable(stated.mask), "is not in the file", "the path of a mask");
        mask = reader.integers(*found);
        if (mask.size() != rows.size())
            return dataError(reader.structure().file + ":" + printable(stated.mask),
                             "has " + std::to_string(mask.size()) + " entries",
                             std::to_string(rows.size()) + ", one per row of " + printable(dataset.path));
    }
    if (stated.maskColumn >= 0)
        for (const double value : columnOf(reader, dataset, axes, stated.maskColumn))
            mask.push_back(value != 0.0 ? 1 : 0);
    const std::vector<double> ids = columnOf(reader, dataset, axes, stated.idColumn);
    for (std::size_t row = 0; row < ids.size(); ++row)
        rows.id[row] = static_cast<std::int32_t>(std::clamp(ids[row], -1.0, 2147483647.0));
    rows.hasId = rows.hasId || !ids.empty();
    if (!mask.empty())
        reader.applyMask(rows, mask, stated.mask.empty() ? dataset.path : stated.mask);
    return rows;
}

Expected<void> addStatedEdge(ForeignReader &reader, const StatedDataset &stated, const DatasetInfo &dataset, const Axes &axes)
{
    if (!isActivationType(dataset.type))
        return dataError(reader.structure().file + ":" + printable(stated.path), "holds " + dataset.typeText,
                         "floating-point numbers");
    Expected<TokenTable> rows = rowsOf(reader, stated, dataset, axes);
    if (!rows)
        return tl::make_unexpected(rows.error());
    const auto layerAxis = static_cast<std::size_t>(std::find(axes.begin(), axes.end(), Axis::Layer) - axes.begin());
    const std::uint64_t layers = layerAxis < axes.size() ? dataset.shape[layerAxis] : 1;
    for (std::uint64_t layer = 0; layer < layers; ++layer) {
        EdgeDraft draft;
        draft.path = dataset.path;
        draft.place = placeInName(dataset.path);
        if (layerAxis < axes.size())
            draft.place.layer = static_cast<std::int64_t>(layer);
        draft.axes = axesText(axes);
        draft.pieces.push_back(pieceOf(dataset, axes, layer));
        draft.channels = stated.channels > 0 ? stated.channels : draft.pieces[0].columns();
        if (draft.channels > draft.pieces[0].columns())
            return dataError(reader.structure().file + ":" + printable(stated.path),
                             "has " + std::to_string(draft.pieces[0].columns()) + " columns",
                             "at least the " + std::to_string(draft.channels) + " of split");
        draft.rows = *rows;
        reader.addEdge(std::move(draft));
    }
    return {};
}

} // namespace

Expected<LayoutResult> readStatedLayout(const FileStructure &structure, BlockSource &source, const std::string &layoutFile)
{
    const Expected<std::vector<StatedDataset>> all = parse(layoutFile);
    if (!all)
        return tl::make_unexpected(all.error());
    ForeignReader reader(structure, source);
    std::vector<std::string> paths;
    for (const DatasetInfo &dataset : structure.datasets)
        paths.push_back(dataset.path);
    for (const StatedDataset &stated : *all) {
        const DatasetInfo *found = reader.find(stated.path);
        if (found == nullptr)
            return dataError(structure.file + ":" + printable(stated.path), "is not in the file",
                             "a dataset such as " + nearestText(stated.path, paths));
        const DatasetInfo dataset = withStoredDtype(*found, reader.result().info.notes);
        const std::optional<Axes> axes = axesByWords(stated.axes);
        if (!axes)
            return usageError(layoutFile, printable(stated.path) + " has an axis with an unknown name",
                              "batch, layer, token, head, head_dim and channel, or out and in");
        if (axes->size() != dataset.shape.size() || std::find(axes->begin(), axes->end(), Axis::Channel) == axes->end())
            return usageError(layoutFile,
                              printable(stated.path) + " of shape " + shapeText(dataset.shape) + " has axes [" + axesText(*axes) +
                                  "]",
                              "one name per axis, a channel among them");
        if (std::find(axes->begin(), axes->end(), Axis::Output) != axes->end())
            reader.addWeight(dataset, *axes, weightNameOf(dataset.path));
        else if (Expected<void> added = addStatedEdge(reader, stated, dataset, *axes); !added)
            return tl::make_unexpected(added.error());
    }
    return reader.finish();
}

} // namespace planish
