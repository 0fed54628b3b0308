// netCDF-4, by its own library or by xarray: dimension scales name the axes, fill values are missing, integers may be packed.
#include <algorithm>
#include <cmath>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/containers.h"
#include "core/io/layouts/foreign_reader.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

std::string properties(const FileStructure &structure)
{
    const auto root = structure.groups.find("/");
    if (root == structure.groups.end())
        return {};
    std::vector<std::string> ignored;
    return AttributeReader("/", root->second, ignored).text("_NCProperties");
}

bool isScale(const DatasetInfo &dataset)
{
    std::vector<std::string> ignored;
    return dataset.attributes.count("CLASS") > 0 &&
           AttributeReader(dataset.path, dataset.attributes, ignored).text("CLASS") == "DIMENSION_SCALE";
}

/// A number attribute, alone or as a list of one.
std::optional<double> numberOf(const DatasetInfo &dataset, const std::string &key)
{
    const auto found = dataset.attributes.find(key);
    if (found == dataset.attributes.end())
        return std::nullopt;
    if (const auto *list = std::get_if<std::vector<double>>(&found->second))
        return list->size() == 1 ? std::optional(list->front()) : std::nullopt;
    if (const auto *list = std::get_if<std::vector<std::int64_t>>(&found->second))
        return list->size() == 1 ? std::optional(static_cast<double>(list->front())) : std::nullopt;
    if (const auto *number = std::get_if<double>(&found->second))
        return *number;
    const auto *integer = std::get_if<std::int64_t>(&found->second);
    return integer != nullptr ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

/// Scales of a variable in the order of its axes: by the ids netCDF keeps, else by a size only one scale has.
std::vector<const DatasetInfo *> scalesOf(const FileStructure &structure, const DatasetInfo &variable)
{
    std::vector<const DatasetInfo *> scales;
    const auto ids = variable.attributes.find("_Netcdf4Coordinates");
    const auto *list = ids == variable.attributes.end() ? nullptr : std::get_if<std::vector<std::int64_t>>(&ids->second);
    for (std::size_t axis = 0; axis < variable.shape.size(); ++axis) {
        const DatasetInfo *match = nullptr;
        for (const DatasetInfo &scale : structure.datasets) {
            if (!isScale(scale) || scale.shape.size() != 1)
                continue;
            const std::optional<double> id = numberOf(scale, "_Netcdf4Dimid");
            const bool byId = list != nullptr && axis < list->size() && id && *id == static_cast<double>((*list)[axis]);
            const bool bySize = list == nullptr && scale.shape[0] == variable.shape[axis];
            if (bySize && match != nullptr)
                return {};
            if (byId || bySize)
                match = &scale;
        }
        if (match == nullptr)
            return {};
        scales.push_back(match);
    }
    return scales;
}

void addVariable(ForeignReader &reader, const DatasetInfo &variable, const std::vector<const DatasetInfo *> &scales)
{
    std::vector<std::string> words;
    for (const DatasetInfo *scale : scales)
        words.emplace_back(leafOf(scale->path));
    const std::optional<Axes> axes = axesByWords(words);
    if (!axes || std::find(axes->begin(), axes->end(), Axis::Channel) == axes->end())
        return reader.refuse(variable.path, "its dimensions are not named as batch, layer, token or channel");
    const auto layerAxis = static_cast<std::size_t>(std::find(axes->begin(), axes->end(), Axis::Layer) - axes->begin());
    const bool layered = layerAxis < axes->size();
    const std::vector<std::int64_t> numbers =
        layered && !isActivationType(scales[layerAxis]->type) ? reader.integers(*scales[layerAxis]) : std::vector<std::int64_t>();
    const std::optional<double> scale = numberOf(variable, "scale_factor");
    const TokenTable rows = reader.rowsOf(variable, *axes);
    for (std::uint64_t layer = 0; layer < (layered ? variable.shape[layerAxis] : 1); ++layer) {
        EdgeDraft draft;
        draft.path = variable.path;
        draft.place = placeInName(variable.path);
        if (layered)
            draft.place.layer = layer < numbers.size() ? numbers[layer] : static_cast<std::int64_t>(layer);
        draft.axes = axesText(*axes);
        DataPiece piece = pieceOf(variable, *axes, layer);
        piece.packed = scale.has_value();
        piece.scale = scale.value_or(1.0);
        piece.offset = numberOf(variable, "add_offset").value_or(0.0);
        if (const std::optional<double> fill = numberOf(variable, "_FillValue"); fill && !std::isnan(*fill))
            piece.missing = fill;
        draft.channels = piece.columns();
        draft.pieces.push_back(std::move(piece));
        draft.rows = rows;
        reader.addEdge(std::move(draft));
    }
    if (scale)
        reader.note(printable(variable.path) + ": packed integers, unpacked with scale_factor and add_offset");
}

} // namespace

LayoutMatch recogniseNetcdf(const FileStructure &structure)
{
    return properties(structure).empty() ? LayoutMatch{}
                                         : LayoutMatch{0.95, "written by netCDF (_NCProperties), dimension scales name the axes"};
}

LayoutMatch recogniseXarray(const FileStructure &structure)
{
    return properties(structure).find("h5netcdf") == std::string::npos
               ? LayoutMatch{}
               : LayoutMatch{0.97, "written by xarray through h5netcdf (_NCProperties), coordinates name the axes"};
}

Expected<LayoutResult> readNetcdf(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    for (const DatasetInfo &variable : structure.datasets) {
        const bool packed = numberOf(variable, "scale_factor").has_value() && isNumeric(variable.type);
        if (isScale(variable) || variable.shape.size() < 2 || (!packed && !isActivationType(variable.type)))
            continue;
        const std::vector<const DatasetInfo *> scales = scalesOf(structure, variable);
        if (scales.empty())
            reader.refuse(variable.path, "its dimensions cannot be told apart; expected dimension scales or a --layout file");
        else
            addVariable(reader, variable, scales);
    }
    return reader.finish();
}

} // namespace planish
