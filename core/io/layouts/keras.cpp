#include "core/io/layouts/keras.h"

#include <algorithm>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::string_view kOptimizer = "/optimizer_weights";

const std::vector<std::string> *listOf(const FileStructure &structure, const std::string &group, const std::string &key)
{
    const auto found = structure.groups.find(group);
    if (found == structure.groups.end())
        return nullptr;
    const auto value = found->second.find(key);
    return value == found->second.end() ? nullptr : std::get_if<std::vector<std::string>>(&value->second);
}

/// "fc1" of "/fc1/fc1/kernel:0", "bert.encoder.layer_._0.attention.self.query" of a longer path.
std::string layerName(const std::string &path)
{
    std::string name = path.substr(1, path.rfind('/') - 1);
    constexpr std::string_view kModel = "model_weights/";
    if (name.starts_with(kModel))
        name.erase(0, kModel.size());
    // The first group repeats the layer's name.
    const std::size_t slash = name.find('/');
    if (slash != std::string::npos)
        name.erase(0, slash + 1);
    std::replace(name.begin(), name.end(), '/', '.');
    return name;
}

/// Attention kernels keep heads in an axis of their own: [in, heads, dim], and [heads, dim, out] for the output.
std::optional<Axes> kernelAxes(const std::string &path, std::size_t rank)
{
    if (rank == 2)
        return Axes{Axis::Channel, Axis::Output};
    if (rank != 3)
        return std::nullopt;
    const bool output = path.find("output_dense") != std::string::npos || path.find("attention_output") != std::string::npos;
    return output ? Axes{Axis::Channel, Axis::Channel, Axis::Output} : Axes{Axis::Channel, Axis::Output, Axis::Output};
}

void addKernel(ForeignReader &reader, const DatasetInfo &kernel, const DatasetInfo *bias, const std::string &name)
{
    const std::optional<Axes> axes = kernelAxes(kernel.path, kernel.shape.size());
    if (!axes)
        return reader.refuse(kernel.path,
                             "a kernel of shape " + shapeText(kernel.shape) + "; expected [in, out] or one with heads");
    const bool hasBias = bias != nullptr && bias->shape.size() == 1;
    reader.addWeight(kernel, *axes, name, hasBias ? name : std::string());
    if (hasBias)
        reader.addBias(*bias, name);
}

bool isLeaf(const std::string &path, std::string_view name)
{
    const std::string_view leaf = leafOf(path);
    return leaf == name || leaf == std::string(name) + ":0";
}

} // namespace

LayoutMatch recogniseKerasWeights(const FileStructure &structure)
{
    return listOf(structure, "/", "layer_names") != nullptr
               ? LayoutMatch{0.9, "root attribute layer_names, as Keras save_weights writes it"}
               : LayoutMatch{};
}

LayoutMatch recogniseKerasModel(const FileStructure &structure)
{
    return listOf(structure, "/model_weights", "layer_names") != nullptr
               ? LayoutMatch{0.95, "a group /model_weights with layer_names, as Keras model.save writes it"}
               : LayoutMatch{};
}

LayoutMatch recogniseTfModel(const FileStructure &structure)
{
    if (listOf(structure, "/", "layer_names") == nullptr)
        return {};
    for (const DatasetInfo &dataset : structure.datasets)
        if (dataset.path.find("/encoder/layer_._") != std::string::npos || dataset.path.find("/h_._") != std::string::npos)
            return {0.97, "layer_names and the module paths of a Hugging Face tf_model.h5: kernels are [in, out]"};
    return {};
}

LayoutMatch recogniseKeras3(const FileStructure &structure)
{
    std::size_t layers = 0;
    for (const DatasetInfo &dataset : structure.datasets)
        layers += dataset.path.starts_with("/layers/") && parentOf(dataset.path).ends_with("/vars") ? 1 : 0;
    return layers > 0 ? LayoutMatch{0.95, std::to_string(layers) +
                                              " variables under layers/NAME/vars, as Keras 3 save_weights writes them"}
                      : LayoutMatch{};
}

Expected<LayoutResult> readKerasLegacy(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    bool optimizer = false;
    for (const DatasetInfo &dataset : structure.datasets) {
        if (dataset.path.starts_with(kOptimizer)) {
            optimizer = true;
            continue;
        }
        const std::string group(parentOf(dataset.path));
        const auto sibling = [&](const std::string &name) {
            const DatasetInfo *found = reader.find(group + "/" + name);
            return found != nullptr ? found : reader.find(group + "/" + name + ":0");
        };
        if (isLeaf(dataset.path, "kernel"))
            addKernel(reader, dataset, sibling("bias"), layerName(dataset.path));
        else if (isLeaf(dataset.path, "gamma"))
            reader.addNorm(dataset, sibling("beta"), layerName(dataset.path));
    }
    if (optimizer)
        reader.note(std::string(kOptimizer) + " holds the state of the optimizer, not weights");
    reader.note("kernels are read as [in, out]: that is how the Keras family stores them");
    return reader.finish();
}

Expected<LayoutResult> readKeras3(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    for (const DatasetInfo &dataset : structure.datasets) {
        const std::string group(parentOf(dataset.path));
        if (!dataset.path.starts_with("/layers/") || !group.ends_with("/vars") || leafOf(dataset.path) != "0")
            continue;
        std::string name(parentOf(group).substr(std::string_view("/layers/").size()));
        std::replace(name.begin(), name.end(), '/', '.');
        const auto attributes = structure.groups.find(group);
        const auto own = attributes == structure.groups.end() ? Attributes::const_iterator() : attributes->second.find("name");
        if (attributes != structure.groups.end() && own != attributes->second.end() && name.find('.') == std::string::npos)
            if (const auto *text = std::get_if<std::string>(&own->second))
                name = *text;
        const DatasetInfo *second = reader.find(group + "/1");
        const bool embedding = group.find("embedding") != std::string::npos;
        if (dataset.shape.size() == 1)
            reader.addNorm(dataset, second, name);
        else if (!embedding)
            addKernel(reader, dataset, second, name);
    }
    reader.note("kernels are read as [in, out]; layers stand in the order of their names, not of their depth");
    return reader.finish();
}

} // namespace planish
