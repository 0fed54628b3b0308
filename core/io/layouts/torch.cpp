#include "core/io/layouts/torch.h"

#include <algorithm>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/printable.h"

namespace planish {

namespace {

bool endsWithPart(const std::string &path, std::string_view part)
{
    const std::vector<std::string> parts = nameParts(path);
    return parts.size() > 1 && parts.back() == part;
}

bool isModuleArray(const DatasetInfo &dataset)
{
    return (endsWithPart(dataset.path, "input") || endsWithPart(dataset.path, "output")) && dataset.shape.size() >= 2 &&
           placeInName(dataset.path).layer >= 0;
}

bool isNested(const std::string &path)
{
    return path.find('/', 1) != std::string::npos;
}

/// GPT-2's Conv1D modules, [in, out].
bool isConv1d(const std::string &path)
{
    const std::string text = "." + placeInName(path).rest + ".";
    return path.find(".h.") != std::string::npos &&
           (text.find(".c_attn.") != std::string::npos || text.find(".c_proj.") != std::string::npos ||
            text.find(".c_fc.") != std::string::npos);
}

bool isNormName(const std::string &path)
{
    const std::vector<std::string> parts = nameParts(path);
    if (parts.size() < 2)
        return false;
    const std::string &module = parts[parts.size() - 2];
    return module.find("norm") != std::string::npos || module.starts_with("ln_");
}

bool isEmbedding(const std::string &path)
{
    const std::vector<std::string> parts = nameParts(path);
    const std::string &module = parts.size() > 1 ? parts[parts.size() - 2] : path;
    return module == "wte" || module == "wpe" || module.find("embed") != std::string::npos;
}

std::string biasPath(const std::string &weight)
{
    return weight.substr(0, weight.size() - std::string_view("weight").size()) + "bias";
}

/// Names of names.md: attn.c_proj is o_proj, mlp.c_fc and mlp.c_proj are fc1 and fc2.
std::string convName(const std::string &path)
{
    const PlaceInName place = placeInName(path);
    const std::string text = "." + place.rest + ".";
    const std::string layer = "layers." + std::to_string(place.layer) + ".";
    if (text.find(".attn.c_proj.") != std::string::npos)
        return layer + "o_proj";
    return layer + (text.find(".c_fc.") != std::string::npos ? "fc1" : "fc2");
}

void addConv1d(ForeignReader &reader, const DatasetInfo &dataset)
{
    const Axes inOut{Axis::Channel, Axis::Output};
    const DatasetInfo *bias = reader.find(biasPath(dataset.path));
    const PlaceInName place = placeInName(dataset.path);
    if (place.rest.find("c_attn") == std::string::npos) {
        const std::string name = convName(dataset.path);
        reader.addWeight(dataset, inOut, name, bias != nullptr ? name : std::string());
        if (bias != nullptr)
            reader.addBias(*bias, name);
        return;
    }
    // Columns of c_attn are q, k and v, one behind the other.
    const auto third = static_cast<std::int64_t>(dataset.shape[1] / 3);
    std::int64_t begin = 0;
    for (const std::string_view which : {"q_proj", "k_proj", "v_proj"}) {
        const std::string name = "layers." + std::to_string(place.layer) + "." + std::string(which);
        reader.addWeight(dataset, inOut, name, {}, begin, begin + third);
        begin += third;
    }
}

void addTensor(ForeignReader &reader, const DatasetInfo &dataset)
{
    const DatasetInfo *bias = reader.find(biasPath(dataset.path));
    const std::string name = weightNameOf(dataset.path);
    if (isNormName(dataset.path) && dataset.shape.size() == 1)
        return reader.addNorm(dataset, bias, name);
    if (dataset.shape.size() != 2 || isEmbedding(dataset.path))
        return;
    if (isConv1d(dataset.path))
        return addConv1d(reader, dataset);
    reader.addWeight(dataset, {Axis::Output, Axis::Channel}, name, bias != nullptr ? name : std::string());
    if (bias != nullptr)
        reader.addBias(*bias, name);
}

void addModuleArray(ForeignReader &reader, const DatasetInfo &dataset)
{
    if (dataset.shape.size() == 2)
        return reader.addArray(dataset, {Axis::Token, Axis::Channel});
    if (dataset.shape.size() == 3)
        return reader.addArray(dataset, {Axis::Request, Axis::Token, Axis::Channel});
    reader.refuse(dataset.path,
                  "shape " + shapeText(dataset.shape) + "; a module reads [tokens, channels] or [batch, tokens, channels]");
}

std::vector<std::string> readersOf(const std::string &site)
{
    if (site == "attn_in")
        return {"q_proj", "k_proj", "v_proj", "qkv_proj"};
    if (site == "attn_out")
        return {"o_proj", "out_proj"};
    if (site == "mlp_in")
        return {"gate_proj", "up_proj", "fc1"};
    return site == "mlp_down" ? std::vector<std::string>{"down_proj", "fc2"} : std::vector<std::string>();
}

void addConsumers(LayoutResult &result)
{
    for (DumpEdge &edge : result.info.edges) {
        for (const std::string &leaf : readersOf(edge.site)) {
            const std::string name = "layers." + std::to_string(edge.layer) + "." + leaf;
            if (std::any_of(result.info.weights.begin(), result.info.weights.end(),
                            [&](const TensorEntry &weight) { return weight.name.value == name; }))
                edge.consumers.push_back(name);
        }
    }
}

LayoutMatch stateMatch(const FileStructure &structure, bool nested)
{
    std::size_t weights = 0;
    for (const DatasetInfo &dataset : structure.datasets)
        weights +=
            endsWithPart(dataset.path, "weight") && isNested(dataset.path) == nested && placeInName(dataset.path).layer >= 0 ? 1
                                                                                                                             : 0;
    const bool only =
        weights > 0 && std::all_of(structure.datasets.begin(), structure.datasets.end(), [](const DatasetInfo &dataset) {
            return endsWithPart(dataset.path, "weight") || endsWithPart(dataset.path, "bias");
        });
    if (!only)
        return {};
    return {0.9, std::to_string(weights) +
                     (nested ? " weights of a state dict as nested groups" : " weights of a state dict under dotted keys")};
}

} // namespace

LayoutMatch recogniseModules(const FileStructure &structure)
{
    std::size_t arrays = 0;
    for (const DatasetInfo &dataset : structure.datasets)
        arrays +=
            isModuleArray(dataset) && isNested(dataset.path) && leafOf(dataset.path).find('.') == std::string_view::npos ? 1 : 0;
    return arrays > 0 ? LayoutMatch{0.9, std::to_string(arrays) + " inputs and outputs of modules, the module path as groups"}
                      : LayoutMatch{};
}

LayoutMatch recogniseStateFlat(const FileStructure &structure)
{
    return stateMatch(structure, false);
}

LayoutMatch recogniseStateNested(const FileStructure &structure)
{
    return stateMatch(structure, true);
}

LayoutMatch recogniseConv1d(const FileStructure &structure)
{
    for (const DatasetInfo &dataset : structure.datasets)
        if (isConv1d(dataset.path) && endsWithPart(dataset.path, "weight"))
            return {0.95, "GPT-2 names (" + printable(dataset.path) +
                              "): Conv1D weights are [in, out], c_attn is q, k and v in columns"};
    return {};
}

Expected<LayoutResult> readTorch(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    for (const DatasetInfo &listed : structure.datasets) {
        const DatasetInfo dataset = withStoredDtype(listed, reader.result().info.notes);
        if (isModuleArray(dataset))
            addModuleArray(reader, dataset);
        else if (endsWithPart(dataset.path, "weight") && isActivationType(dataset.type))
            addTensor(reader, dataset);
    }
    for (const DumpEdge &edge : reader.result().info.edges)
        if (placeInName(edge.path).output)
            reader.note(printable(edge.path) + " is what a module gives, not what a linear reads: no weight is matched with it");
    LayoutResult result = reader.finish();
    addConsumers(result);
    return result;
}

} // namespace planish
