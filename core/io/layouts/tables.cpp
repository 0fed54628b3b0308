// AnnData, PyTables, pandas and hickle: arrays with a fixed place, and tables of records that are no edges.
#include <algorithm>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/containers.h"
#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/generic.h"
#include "core/io/printable.h"

namespace planish {

namespace {

std::string textOf(const FileStructure &structure, const std::string &group, std::string_view key)
{
    const auto found = structure.groups.find(group);
    if (found == structure.groups.end() || found->second.count(std::string(key)) == 0)
        return {};
    std::vector<std::string> ignored;
    return AttributeReader(group, found->second, ignored).text(key, "?");
}

void takeColumn(ForeignReader &reader, const std::string &path, std::vector<std::int32_t> &column, bool &has)
{
    const DatasetInfo *dataset = reader.find(path);
    if (dataset == nullptr)
        return;
    const std::vector<std::int64_t> values = reader.integers(*dataset);
    if (values.size() != column.size())
        return;
    std::transform(values.begin(), values.end(), column.begin(),
                   [](std::int64_t v) { return static_cast<std::int32_t>(std::clamp<std::int64_t>(v, INT32_MIN, INT32_MAX)); });
    has = true;
}

} // namespace

LayoutMatch recogniseAnndata(const FileStructure &structure)
{
    return textOf(structure, "/", "encoding-type") == "anndata" ? LayoutMatch{0.99, "root attribute encoding-type is anndata"}
                                                                : LayoutMatch{};
}

Expected<LayoutResult> readAnndata(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    for (const auto &[group, attributes] : structure.groups) {
        const std::string encoding = textOf(structure, group, "encoding-type");
        if (encoding == "csr_matrix" || encoding == "csc_matrix")
            reader.refuse(group, "sparse (" + encoding + "); expected a dense [obs, var] array");
    }
    for (const DatasetInfo &dataset : structure.datasets) {
        const bool matrix = dataset.path == "/X" || (parentOf(dataset.path) == "/layers");
        if (!matrix || dataset.shape.size() != 2 || !isActivationType(dataset.type))
            continue;
        EdgeDraft draft;
        draft.path = dataset.path;
        draft.place = placeInName(leafOf(dataset.path));
        draft.axes = "token, channel (obs, var)";
        draft.pieces.push_back(pieceOf(dataset, {Axis::Token, Axis::Channel}));
        draft.channels = dataset.shape[1];
        draft.rows = plainRows(dataset.shape[0]);
        takeColumn(reader, "/obs/token_id", draft.rows.id, draft.rows.hasId);
        takeColumn(reader, "/obs/request", draft.rows.request, draft.rows.hasRequest);
        takeColumn(reader, "/obs/position", draft.rows.position, draft.rows.hasPosition);
        reader.addEdge(std::move(draft));
    }
    return reader.finish();
}

LayoutMatch recognisePytables(const FileStructure &structure)
{
    return textOf(structure, "/", "PYTABLES_FORMAT_VERSION").empty() ? LayoutMatch{} : LayoutMatch{0.9, "written by PyTables"};
}

LayoutMatch recognisePandas(const FileStructure &structure)
{
    for (const auto &[group, attributes] : structure.groups)
        if (textOf(structure, group, "pandas_type") == "frame")
            return {0.97, "DataFrame of pandas in its fixed format (" + printable(group) + ")"};
    return {};
}

LayoutMatch recogniseHickle(const FileStructure &structure)
{
    return textOf(structure, "/", "HICKLE_VERSION").empty() ? LayoutMatch{} : LayoutMatch{0.97, "written by hickle"};
}

Expected<LayoutResult> readTables(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    if (Expected<void> added = addArrays(reader); !added)
        return tl::make_unexpected(added.error());
    return reader.finish();
}

Expected<LayoutResult> readPandas(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    for (const DatasetInfo &dataset : structure.datasets) {
        const std::string group(parentOf(dataset.path));
        if (!leafOf(dataset.path).starts_with("block") || !leafOf(dataset.path).ends_with("_values") || dataset.shape.size() != 2)
            continue;
        if (leafOf(dataset.path) != "block0_values" || reader.find(group + "/block1_values") != nullptr)
            reader.refuse(dataset.path, "one of several column blocks; expected a frame of one number type");
        else
            reader.addArray(dataset, {Axis::Token, Axis::Channel});
    }
    return reader.finish();
}

} // namespace planish
