// MATLAB 7.3: column-major, so every array lies with its axes reversed; cells point into #refs#.
#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/containers.h"
#include "core/io/layouts/foreign_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

std::string classOf(const DatasetInfo &dataset)
{
    std::vector<std::string> ignored;
    return AttributeReader(dataset.path, dataset.attributes, ignored).text("MATLAB_class");
}

} // namespace

LayoutMatch recogniseMatlab(const FileStructure &structure)
{
    for (const DatasetInfo &dataset : structure.datasets)
        if (dataset.attributes.count("MATLAB_class") > 0)
            return {0.98, "MATLAB_class attributes: axes are reversed on disk"};
    return {};
}

Expected<LayoutResult> readMatlab(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    reader.note("MATLAB stores column by column: [channels, tokens] on disk is read as [tokens, channels]");
    for (const DatasetInfo &dataset : structure.datasets) {
        const std::string kind = classOf(dataset);
        if ((kind != "single" && kind != "double") || dataset.shape.size() != 2 || dataset.attributes.count("MATLAB_empty") > 0)
            continue;
        if (dataset.shape[0] < 2 || dataset.shape[1] < 2) {
            reader.note(printable(dataset.path) + " " + shapeText(dataset.shape) + " is a vector, no edge");
            continue;
        }
        // [out, in] of MATLAB lies as [in, out].
        if (namesWeight(dataset.path))
            reader.addWeight(dataset, {Axis::Channel, Axis::Output}, weightNameOf(dataset.path));
        else
            reader.addArray(dataset, {Axis::Channel, Axis::Token}, {}, false);
    }
    return reader.finish();
}

} // namespace planish
