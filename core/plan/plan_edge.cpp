#include "core/plan/plan_edge.h"

#include <algorithm>
#include <charconv>

#include "core/graph/edge_builder.h"
#include "core/graph/edge_names.h"
#include "core/graph/ties.h"
#include "core/names/name_pattern.h"
#include "core/names/row_expression.h"
#include "core/plan/joint.h"

namespace planish {

namespace {

const FamilyEdge *familyEdgeOf(const Family *family, const std::string &site)
{
    if (!family)
        return nullptr;
    const auto found = family->edges.find(site);
    return found == family->edges.end() ? nullptr : &found->second;
}

/// The part of a fused tensor these rows are, when the family's producer of this site lies exactly there: qkv_proj[q+kv:q+2kv]
/// is v_proj. Other rows keep the name of the whole tensor, which is then a wrong producer.
std::string partName(const NamedRows &producer, const Family &family, const FamilyEdge &familyEdge, std::int64_t layer, const ModelInfo &model)
{
    const auto patterns = family.names.find(familyEdge.producer);
    if (producer.rows.end < 0 || patterns == family.names.end())
        return producer.name;
    for (const NamePattern &pattern : patterns->second) {
        if (pattern.rowBegin.empty() || pattern.rowEnd.empty())
            continue;
        const auto begin = evaluateRows(pattern.rowBegin, rowVariables(model), producer.name);
        const auto end = evaluateRows(pattern.rowEnd, rowVariables(model), producer.name);
        const bool unknown = !begin || !end; // heads not stated: the rows cannot be judged
        if (unknown || (*begin == producer.rows.begin && *end == producer.rows.end))
            return fillPattern(familyEdge.producer, {layer, -1});
    }
    return producer.name;
}

Producer producerOf(const Assignment &assignment, const Family *family, const FamilyEdge *familyEdge, std::int64_t layer, const ModelInfo &model)
{
    const NamedRows producer = namedRows(assignment.producerName);
    const std::string between = familyEdge ? familyEdge->between : std::string();
    if (assignment.producerKind == "rmsnorm" || assignment.producerKind == "layernorm")
        return NormProducer{{producer.name}, assignment.producerKind, assignment.producerOffset ? 1 : 0, !family || family->normHasScale,
                            family ? family->normHasBias : assignment.producerKind == "layernorm"};
    if (assignment.producerKind == "elementwise" || between.find("(gate)*up") != std::string::npos) {
        const std::string gate = familyEdge && !familyEdge->gate.empty() ? "layers." + std::to_string(layer) + "." + familyEdge->gate : std::string();
        return ElementwiseProducer{{producer.name}, {gate}, producer.rows, true, between.empty() ? "silu(gate)*up" : between};
    }
    if (assignment.producerKind == "linear") {
        LinearProducer linear;
        linear.tensor = {producer.name};
        linear.name = {family && familyEdge ? partName(producer, *family, *familyEdge, layer, model) : producer.name};
        linear.rows = producer.rows;
        linear.hasBias = true;
        linear.between = between.empty() ? "identity" : between;
        return linear;
    }
    if (assignment.producerKind == "stream")
        return StreamProducer{{assignment.producerName}};
    return UnknownProducer{assignment.producerName};
}

bool knows(const Family &family, const std::string &name)
{
    return std::any_of(family.names.begin(), family.names.end(), [&](const auto &entry) { return matchPattern(entry.first, name).has_value(); });
}

bool knowsAll(const Family &family, const Plan &plan)
{
    return std::all_of(plan.assignments.begin(), plan.assignments.end(), [&](const Assignment &assignment) {
        const bool consumers = std::all_of(assignment.consumers.begin(), assignment.consumers.end(),
                                           [&](const std::string &text) { return knows(family, namedRows(text).name); });
        return consumers && family.edges.contains(partsOf(assignment.edge).site);
    });
}

} // namespace

EdgeIdParts partsOf(const EdgeId &id)
{
    EdgeIdParts parts;
    const std::string &text = id.value;
    parts.site = text.substr(text.rfind('.') == std::string::npos ? 0 : text.rfind('.') + 1);
    const std::size_t at = text.find("layers.");
    if (at != std::string::npos)
        std::from_chars(text.data() + at + 7, text.data() + text.size(), parts.layer);
    return parts;
}

std::size_t channelsOf(const Assignment &assignment, const ModelInfo &model)
{
    if (assignment.rewrite && !assignment.rewrite->input.isIdentity())
        return channelsOf(assignment.rewrite->input);
    const std::string site = partsOf(assignment.edge).site;
    const std::int64_t heads = model.headDim > 0 ? model.numHeads * model.headDim : model.hiddenSize;
    return static_cast<std::size_t>(std::max<std::int64_t>(0, site == "mlp_down" ? model.ffnSize : site == "attn_out" ? heads : model.hiddenSize));
}

Edge edgeOf(const Assignment &assignment, const ModelInfo &model, const Family *family)
{
    const EdgeIdParts parts = partsOf(assignment.edge);
    const FamilyEdge *familyEdge = familyEdgeOf(family, parts.site);
    Edge edge;
    edge.id = assignment.edge;
    edge.layer = parts.layer;
    edge.site = parts.site;
    edge.channels = channelsOf(assignment, model);
    edge.producer = producerOf(assignment, family, familyEdge, parts.layer, model);
    std::vector<std::string> covered;
    for (const std::string &text : assignment.consumers) {
        const NamedRows named = namedRows(text);
        Consumer consumer;
        consumer.tensor = {named.name};
        consumer.rows = named.rows;
        consumer.role = roleOf(named.name);
        edge.consumers.push_back(std::move(consumer));
        covered.push_back(text);
    }
    if (family)
        edge.otherReaders = uncoveredReaders(*family, model, assignment.edge.value, parts.layer, parts.site, covered);
    if (model.numHeads > 0)
        edge.ties = tiesOf(parts.site, edge.channels, model, ropeStyleOf(model, family), false);
    return edge;
}

std::vector<std::shared_ptr<const Family>> familiesOf(const Plan &plan, const FamilyList &families)
{
    if (auto stated = plan.source.family.empty() ? nullptr : families.find(plan.source.family))
        return {stated};
    std::vector<std::shared_ptr<const Family>> fitting;
    for (const auto &family : families.all()) {
        if (knowsAll(*family, plan))
            fitting.push_back(family);
    }
    return fitting;
}

} // namespace planish
