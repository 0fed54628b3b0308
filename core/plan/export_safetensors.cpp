// Target safetensors: the side file as it is, and KEYS.md that says what each of its tensors is.
#include <algorithm>

#include "core/io/safetensors.h"
#include "core/plan/exporter.h"
#include "core/plan/manifest.h"

namespace planish {

namespace {

std::string shapeText(const std::vector<std::uint64_t> &shape)
{
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + "]";
}

std::string keysText(const ExportContext &context)
{
    std::string text =
        "# Tensors of this export\n\n"
        "X is one edge's input, one row per token; X' = (X - c) P and W' = W P^-T. A scale s divides X and multiplies\n"
        "the columns of W; a permutation takes X'[:,j] = X[:,perm[j]]; a rotation R acts as X R. The order in which\n"
        "the operators of an edge act is that of its `operators` list in the manifest beside this file.\n\n"
        "| key | dtype | shape |\n|---|---|---|\n";
    for (const SideTensor &tensor : *context.tensors)
        text +=
            "| `" + tensor.key + "` | " + std::string(safetensorsName(tensor.type)) + " | " + shapeText(tensor.shape) + " |\n";
    return text;
}

} // namespace

Expected<ExportContent> exportSafetensors(const ExportContext &context)
{
    ExportContent content;
    for (const Assignment &assignment : context.plan->assignments) {
        EdgeExport edge;
        edge.edge = labelOf(assignment);
        // Methods that change the function are never called exact, though every number of theirs is carried.
        const bool changes = assignment.functionChange || (assignment.rewrite && assignment.rewrite->changesFunction);
        edge.fidelity = changes ? Fidelity::FormatOnly : Fidelity::Exact;
        if (changes)
            content.warnings.push_back(edge.edge +
                                       ": its method changes the function; the numbers are carried, the label is not exact");
        for (const SideTensor &tensor : *context.tensors) {
            if (tensor.key.starts_with(edge.edge + "."))
                edge.carried.push_back(tensor.key);
        }
        content.edges.push_back(std::move(edge));
    }
    content.files.push_back({"KEYS.md", keysText(context)});
    return content;
}

} // namespace planish
