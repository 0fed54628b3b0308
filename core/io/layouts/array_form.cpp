#include "core/io/layouts/array_form.h"

#include <algorithm>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/printable.h"

namespace planish {

namespace {

using Shape = std::vector<std::uint64_t>;

const std::vector<std::string> *textsOf(const Attributes &attributes, std::string_view key)
{
    const auto found = attributes.find(std::string(key));
    return found == attributes.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
}

std::int64_t numberOf(const Attributes &attributes, std::string_view key)
{
    const auto found = attributes.find(std::string(key));
    const auto *number = found == attributes.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
    return number != nullptr ? *number : -1;
}

ArrayForm decided(std::string_view key, Axes axes, std::string reason)
{
    ArrayForm form;
    form.key = key;
    form.axes = std::move(axes);
    form.reason = std::move(reason);
    return form;
}

ArrayForm open(std::vector<Axes> readings)
{
    ArrayForm form;
    form.key = "ambiguous";
    form.readings = std::move(readings);
    return form;
}

} // namespace

FormContext::FormContext(const FileStructure &structure) : m_structure(structure)
{
    for (const auto &[path, attributes] : structure.groups)
        for (const std::string_view key : {"hidden_size", "hidden_dim", "d_model", "dim", "ffn_size", "n_embd"})
            if (const std::int64_t width = numberOf(attributes, key); width > 0)
                m_widths.insert(static_cast<std::uint64_t>(width));
    for (const DatasetInfo &dataset : structure.datasets) {
        m_byPath.emplace(dataset.path, &dataset);
        const std::string_view name = std::string_view(dataset.path).substr(1);
        if (name.find('/') == std::string_view::npos && name.find('.') != std::string_view::npos && placeInName(name).layer >= 0)
            ++m_dotted;
        if (dataset.shape.size() != 2 || !namesWeight(dataset.path))
            continue;
        m_widths.insert(dataset.shape[1]);
        // PyTorch's ".weight" is [out, in]; of any other weight both sides may be the inputs.
        if (!dataset.path.ends_with("weight"))
            m_widths.insert(dataset.shape[0]);
    }
}

const DatasetInfo *FormContext::find(std::string_view path) const
{
    const auto found = m_byPath.find(path);
    return found == m_byPath.end() ? nullptr : found->second;
}

const DatasetInfo *FormContext::sideOf(const DatasetInfo &dataset, const Shape &shape) const
{
    std::string group(parentOf(dataset.path));
    while (true) {
        for (const std::string_view name : {"attention_mask", "mask", "input_ids", "token_ids", "valid_mask"}) {
            const DatasetInfo *found = find(group + "/" + std::string(name));
            if (found != nullptr && found->shape == shape && !isActivationType(found->type))
                return found;
        }
        if (group.empty())
            return nullptr;
        group = std::string(parentOf(group));
    }
}

std::int64_t FormContext::statedNumber(const DatasetInfo &dataset, std::initializer_list<std::string_view> keys) const
{
    for (const std::string_view key : keys)
        if (const std::int64_t number = numberOf(dataset.attributes, key); number >= 0)
            return number;
    for (std::string group(parentOf(dataset.path));; group = std::string(parentOf(group))) {
        const auto found = m_structure.groups.find(group.empty() ? "/" : group);
        for (const std::string_view key : keys)
            if (found != m_structure.groups.end())
                if (const std::int64_t number = numberOf(found->second, key); number >= 0)
                    return number;
        if (group.empty())
            return -1;
    }
}

/// Axes named by an attribute, or by a list of texts beside (whose words are read later).
ArrayForm FormContext::labelled(const DatasetInfo &dataset) const
{
    for (const std::string_view key : {"dims", "axes", "axis_names", "dim_names"}) {
        const std::vector<std::string> *words = textsOf(dataset.attributes, key);
        if (words == nullptr || words->size() != dataset.shape.size())
            continue;
        if (std::optional<Axes> axes = axesByWords(*words)) {
            const bool heads = std::find(axes->begin(), axes->end(), Axis::Head) != axes->end();
            return decided(heads ? "heads_4d" : "labelled_axes", std::move(*axes),
                           "attribute " + std::string(key) + " names the axes");
        }
    }
    const std::string group(parentOf(dataset.path));
    for (const std::string_view name : {"axes", "dims", "axis_names"}) {
        const DatasetInfo *found = find(group + "/" + std::string(name));
        if (found == nullptr || found->type != StoredType::Text || found->shape != Shape{dataset.shape.size()})
            continue;
        ArrayForm form;
        form.key = "labelled_axes";
        form.reason = printable(found->path) + " names the axes";
        return form;
    }
    return {};
}

ArrayForm FormContext::rank2(const DatasetInfo &dataset, const PlaceInName &place) const
{
    const Axes normal{Axis::Token, Axis::Channel};
    const Axes turned{Axis::Channel, Axis::Token};
    const std::uint64_t rows = dataset.shape[0];
    const std::uint64_t columns = dataset.shape[1];
    const bool rowsKnown = m_widths.count(rows) > 0;
    const bool columnsKnown = m_widths.count(columns) > 0;
    const bool named = place.layer >= 0 || place.moduleInput || place.output;
    const std::string_view key = m_dotted > 1 && parentOf(dataset.path).empty() ? "per_layer_2d_dotted" : "per_layer_2d";
    if (rowsKnown != columnsKnown && rows != columns)
        return columnsKnown ? decided(key, normal, "the last axis has a width the file states")
                            : decided("transposed", turned, "the first axis has the width of a weight, the last has not");
    if (place.moduleInput || place.output || !place.site.empty())
        return decided(key, normal, "datasets named after modules of a layer, [tokens, channels]");
    if (!named || rows == columns)
        return open({normal, turned});
    ArrayForm form = decided(key, normal, "datasets named by layer, [tokens, channels]");
    form.assumed = !columnsKnown;
    return form;
}

ArrayForm FormContext::rank3(const DatasetInfo &dataset, const PlaceInName &place) const
{
    const Shape &shape = dataset.shape;
    const std::int64_t layers = statedNumber(dataset, {"n_layers", "num_layers", "layers"});
    const auto is = [](std::int64_t stated, std::uint64_t size) {
        return stated > 0 && static_cast<std::uint64_t>(stated) == size;
    };
    if (place.layer >= 0 && shape[2] % 32 == 2 && shape[2] > 34) {
        ArrayForm form = decided("appended_columns", {Axis::Request, Axis::Token, Axis::Channel},
                                 "[batch, tokens, K + 2]: the last two columns look like a mask and token ids");
        form.appended = 2;
        return form;
    }
    if (place.layer >= 0 || sideOf(dataset, {shape[0], shape[1]}) != nullptr)
        return decided("batch_seq_k", {Axis::Request, Axis::Token, Axis::Channel},
                       place.layer >= 0 ? "arrays named by layer, [batch, tokens, channels]"
                                        : "a mask or ids of shape [batch, tokens] lie beside [batch, tokens, channels]");
    if (is(layers, shape[0]) && !is(layers, shape[1]))
        return decided("stacked_layers_first", {Axis::Layer, Axis::Token, Axis::Channel},
                       "the first axis has the stated number of layers");
    if (is(layers, shape[1]) && !is(layers, shape[0]))
        return decided("stacked_layers_middle", {Axis::Token, Axis::Layer, Axis::Channel},
                       "the middle axis has the stated number of layers");
    const bool first = sideOf(dataset, {shape[0]}) != nullptr;
    const bool middle = sideOf(dataset, {shape[1]}) != nullptr;
    if (first != middle && shape[0] != shape[1])
        return middle ? decided("stacked_layers_first", {Axis::Layer, Axis::Token, Axis::Channel},
                                "a mask or ids fit the middle axis")
                      : decided("stacked_layers_middle", {Axis::Token, Axis::Layer, Axis::Channel},
                                "a mask or ids fit the first axis");
    return open({{Axis::Layer, Axis::Token, Axis::Channel}, {Axis::Token, Axis::Layer, Axis::Channel}});
}

ArrayForm FormContext::rank4(const DatasetInfo &dataset, const PlaceInName &place) const
{
    const Shape &shape = dataset.shape;
    if (sideOf(dataset, {shape[1], shape[2]}) != nullptr && place.layer < 0)
        return decided("stacked_layers_first", {Axis::Layer, Axis::Request, Axis::Token, Axis::Channel},
                       "a mask or ids of shape [batch, tokens] lie beside [layers, batch, tokens, channels]");
    const Axes positionsFirst{Axis::Request, Axis::Token, Axis::Head, Axis::HeadDim};
    const Axes headsFirst{Axis::Request, Axis::Head, Axis::Token, Axis::HeadDim};
    const std::int64_t heads = statedNumber(dataset, {"num_heads", "n_heads", "heads"});
    const auto is = [](std::int64_t stated, std::uint64_t size) {
        return stated > 0 && static_cast<std::uint64_t>(stated) == size;
    };
    if (is(heads, shape[1]) != is(heads, shape[2]))
        return decided("heads_4d", is(heads, shape[2]) ? positionsFirst : headsFirst, "one axis has the stated number of heads");
    const std::string leaf = nameParts(dataset.path).back();
    if (leaf == "z" || leaf == "q" || leaf == "k" || leaf == "v" || leaf.starts_with("hook_"))
        return decided("heads_4d", positionsFirst, "named " + leaf + " as in TransformerLens: [batch, position, head, head_dim]");
    return open({positionsFirst, headsFirst});
}

ArrayForm FormContext::formOf(const DatasetInfo &listed) const
{
    std::vector<std::string> ignored;
    const DatasetInfo dataset = withStoredDtype(listed, ignored);
    const bool empty = std::find(dataset.shape.begin(), dataset.shape.end(), 0U) != dataset.shape.end();
    if (!isActivationType(dataset.type) || dataset.shape.size() < 2 || empty || namesWeight(dataset.path))
        return {};
    const PlaceInName place = placeInName(dataset.path);
    if (ArrayForm form = labelled(dataset); !form.key.empty())
        return form;
    switch (dataset.shape.size()) {
    case 2:
        return rank2(dataset, place);
    case 3:
        return rank3(dataset, place);
    case 4:
        return rank4(dataset, place);
    default:
        return {};
    }
}

std::string layoutLine(const DatasetInfo &dataset, const Axes &axes)
{
    return "datasets: [{path: \"" + printable(dataset.path) + "\", axes: [" + axesText(axes) + "]}]";
}

std::string undecidedText(const DatasetInfo &dataset, const ArrayForm &form)
{
    std::string text = "axes undecided: " + shapeText(dataset.shape) + " may be [" + axesText(form.readings[0]) + "] or [" +
                       axesText(form.readings[1]) + "]; expected a --layout FILE.yaml with the line " +
                       layoutLine(dataset, form.readings[0]) + " or the line " + layoutLine(dataset, form.readings[1]);
    return text;
}

} // namespace planish
