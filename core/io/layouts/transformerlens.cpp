// run_with_cache of TransformerLens, hook names with dots or as groups. Its weights are folded: another basis than Hugging
// Face's.
#include "core/io/layouts/transformerlens.h"

#include <algorithm>
#include <array>

#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::string_view kBasis = "transformerlens";

std::string dotted(const std::string &path)
{
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    return name;
}

bool isHook(const std::string &path)
{
    const std::vector<std::string> parts = nameParts(path);
    const bool place = std::find(parts.begin(), parts.end(), "blocks") != parts.end() ||
                       std::find(parts.begin(), parts.end(), "ln_final") != parts.end();
    return place && !parts.empty() && parts.back().starts_with("hook_");
}

/// Axes of a hook by its name; the batch axis may have been dropped.
std::optional<Axes> hookAxes(const std::string &leaf, std::size_t rank)
{
    constexpr std::array<std::string_view, 6> kHeads{"hook_q", "hook_k", "hook_v", "hook_z", "hook_rot_q", "hook_rot_k"};
    const bool heads = std::find(kHeads.begin(), kHeads.end(), leaf) != kHeads.end();
    Axes axes{Axis::Request, Axis::Token};
    if (heads)
        axes.push_back(Axis::Head);
    axes.push_back(heads ? Axis::HeadDim : Axis::Channel);
    if (rank + 1 == axes.size())
        axes.erase(axes.begin());
    return rank == axes.size() ? std::optional(axes) : std::nullopt;
}

bool isAttention(const std::string &leaf)
{
    return leaf == "hook_attn_scores" || leaf == "hook_pattern" || leaf == "hook_scale" || leaf == "hook_result";
}

/// W_Q, W_K, W_V [head, in, dim], W_O [head, dim, out], W_in and W_out [in, out].
std::optional<Axes> weightAxes(const std::string &leaf, std::size_t rank)
{
    if (rank == 3 && (leaf == "w_q" || leaf == "w_k" || leaf == "w_v"))
        return Axes{Axis::Output, Axis::Channel, Axis::Output};
    if (rank == 3 && leaf == "w_o")
        return Axes{Axis::Channel, Axis::Channel, Axis::Output};
    if (rank == 2 && (leaf == "w_in" || leaf == "w_out" || leaf == "w_gate"))
        return Axes{Axis::Channel, Axis::Output};
    return std::nullopt;
}

std::string weightName(const PlaceInName &place, const std::string &leaf)
{
    return "layers." + std::to_string(place.layer) + "." + leaf;
}

std::vector<std::string> readersOf(const std::string &site)
{
    if (site == "attn_in")
        return {"w_q", "w_k", "w_v"};
    if (site == "attn_out")
        return {"w_o"};
    if (site == "mlp_in")
        return {"w_gate", "w_in"};
    return site == "mlp_down" ? std::vector<std::string>{"w_out"} : std::vector<std::string>();
}

void addConsumers(LayoutResult &result)
{
    for (DumpEdge &edge : result.info.edges) {
        edge.basis = kBasis;
        for (const std::string &leaf : readersOf(edge.site)) {
            const std::string name = "layers." + std::to_string(edge.layer) + "." + leaf;
            const bool there = std::any_of(result.info.weights.begin(), result.info.weights.end(),
                                           [&](const TensorEntry &weight) { return weight.name.value == name; });
            if (there)
                edge.consumers.push_back(name);
        }
    }
}

} // namespace

LayoutMatch recogniseTransformerLens(const FileStructure &structure)
{
    for (const DatasetInfo &dataset : structure.datasets)
        if (isHook(dataset.path))
            return {0.95, "hook names of TransformerLens (" + printable(dotted(dataset.path)) + ")"};
    return {};
}

Expected<LayoutResult> readTransformerLens(const FileStructure &structure, BlockSource &source)
{
    ForeignReader reader(structure, source);
    reader.note(
        "TransformerLens folds norms into weights and centres them: this is not the basis of the Hugging Face weights, which are "
        "never matched with these edges");
    reader.result().info.model.baseBasis = kBasis;
    for (const DatasetInfo &listed : structure.datasets) {
        const DatasetInfo dataset = withStoredDtype(listed, reader.result().info.notes);
        const std::vector<std::string> parts = nameParts(dataset.path);
        const std::string leaf = parts.empty() ? std::string() : parts.back();
        if (const std::optional<Axes> axes = weightAxes(leaf, dataset.shape.size())) {
            reader.addWeight(dataset, *axes, weightName(placeInName(dataset.path), leaf));
            continue;
        }
        if (!isHook(dataset.path))
            continue;
        const std::optional<Axes> axes = hookAxes(leaf, dataset.shape.size());
        if (isAttention(leaf) || !axes)
            reader.note(printable(dataset.path) + " " + shapeText(dataset.shape) +
                        " is no edge: " + (leaf == "hook_scale" ? "one number per token" : "no [tokens, channels]"));
        else
            reader.addArray(dataset, *axes);
    }
    LayoutResult result = reader.finish();
    addConsumers(result);
    return result;
}

} // namespace planish
