#include "core/graph/model_graph.h"

#include <algorithm>
#include <set>

#include "core/graph/edge_builder.h"

namespace planish {

namespace {

/// Facts of the family where the dump is silent. A stated fact is never overwritten.
ModelInfo withFamilyFacts(ModelInfo model, const Family *family)
{
    if (model.headDim == 0 && model.numHeads > 0 && model.hiddenSize % model.numHeads == 0)
        model.headDim = model.hiddenSize / model.numHeads;
    if (model.numKvHeads == 0)
        model.numKvHeads = model.numHeads;
    if (!family)
        return model;
    if (model.family.empty())
        model.family = family->key;
    if (model.normKind.empty())
        model.normKind = family->normKind;
    if (model.ropeStyle.empty())
        model.ropeStyle = family->ropeStyle;
    model.postNorm = model.postNorm || family->postNorm;
    model.qkNorm = model.qkNorm || family->qkNorm;
    model.parallelBlock = model.parallelBlock || family->parallelBlock;
    model.normOffset = std::max(model.normOffset, family->normOffset);
    return model;
}

bool namedByArchitecture(const Family &family, const ModelInfo &model)
{
    return std::any_of(model.architectures.begin(), model.architectures.end(), [&](const std::string &name) {
        return std::find(family.architectures.begin(), family.architectures.end(), name) != family.architectures.end();
    });
}

std::int64_t layerCount(const ModelInfo &model, const std::vector<Edge> &edges)
{
    std::int64_t layers = model.numLayers;
    for (const Edge &edge : edges)
        if (edge.site != "residual") // layers.<num_layers>.residual is the input of the final norm
            layers = std::max(layers, edge.layer + 1);
    return layers;
}

Stream streamOf(const FamilyStream &stated, const EdgeSources &sources, std::int64_t layers)
{
    const Family &family = *sources.family;
    Stream stream;
    stream.id = {"stream:" + stated.name};
    stream.width = static_cast<std::size_t>(std::max<std::int64_t>(sources.model.hiddenSize, 0));
    stream.tied = sources.model.tiedEmbeddings;
    KnownNames known = sources.known;
    known.layers = layers;
    const auto perLayer = [&](const std::string &role) {
        return family.names.count("layers.{l}." + role) || role.find("{e}") != std::string::npos;
    };
    for (const std::string &role : stated.writers) {
        if (!perLayer(role)) {
            stream.writers.push_back({role});
            continue;
        }
        for (std::int64_t l = 0; l < layers; ++l)
            for (const std::string &name : namesOfRole(role, {"", "", {l, -1}}, family, known))
                stream.writers.push_back({name});
    }
    std::set<std::string> norms;
    for (const std::string &site : stated.readers) {
        const FamilyEdge *edge = family.edge(site, sources.model, [&](const std::string &pattern) {
            return sources.known.has(fillPattern(pattern, {0, -1}));
        });
        const bool global = site == "head" || site == "encoder_out";
        if (global && edge)
            stream.readers.push_back({site});
        for (std::int64_t l = 0; !global && l < layers; ++l) {
            stream.readers.push_back({"layers." + std::to_string(l) + "." + site});
            if (const std::string norm = edge ? fillPattern(edge->producer, {l, -1}) : std::string(); !norm.empty())
                if (norms.insert(norm).second)
                    stream.norms.push_back({norm});
        }
    }
    if (!stated.finalNorm.empty() && norms.insert(stated.finalNorm).second)
        stream.norms.push_back({stated.finalNorm});
    return stream;
}

} // namespace

const Edge *ModelGraph::find(const EdgeId &id) const
{
    const auto found = std::find_if(edges.begin(), edges.end(), [&](const Edge &edge) { return edge.id == id; });
    return found == edges.end() ? nullptr : &*found;
}

Expected<ModelGraph> buildGraph(const DumpInfo &dump, const ResolvedWeights &weights, const FamilyList &families)
{
    ModelGraph graph;
    graph.family = weights.family();
    if (!graph.family)
        graph.family = families.match(dump.model.family, weights.model().architectures, {});
    graph.notes = weights.notes();
    if (!graph.family)
        graph.notes.push_back("no family fits: producers and other readers are those the dump names (--family KEY names one)");
    else if (dump.model.family.empty() && !namedByArchitecture(*graph.family, weights.model()))
        graph.notes.push_back("family " + graph.family->key + " was recognised by tensor names (--family KEY states it)");
    graph.model = withFamilyFacts(weights.model(), graph.family.get());
    EdgeSources sources{dump, weights, graph.family.get(), graph.model, {}};
    sources.known.has = [&](const std::string &name) { return weights.find({name}) != nullptr; };
    sources.known.experts = graph.model.numExperts;
    sources.known.layers = graph.model.numLayers;
    for (const DumpEdge &edge : dump.edges)
        graph.edges.push_back(buildEdge(edge, sources, graph.notes));
    if (graph.family)
        for (const FamilyStream &stated : graph.family->streams)
            graph.streams.push_back(streamOf(stated, sources, layerCount(graph.model, graph.edges)));
    return graph;
}

} // namespace planish
