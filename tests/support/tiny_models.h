// One tiny model of each family: a dump with the edges of two layers and a checkpoint under the family's own stored names, opened
// into a graph. 4 query heads of 4, hidden 16, ffn 24; grouped families have 2 key-value heads.
#pragma once

#include <set>

#include "core/graph/model_graph.h"
#include "core/names/name_pattern.h"
#include "tests/support/memory_tensors.h"

namespace planish::test {

struct TinyChoices {
    std::string family;
    bool postNorm = false, tied = false;
    std::int64_t rotaryDim = 0;
    std::set<std::string> absent;           ///< dump name patterns left out of the checkpoint
    std::vector<std::string> dropConsumers; ///< roles left out of every edge's consumers attribute
    std::string producerOf, producer;       ///< site whose producer attribute is stated
    bool heads = true;                      ///< false: heads unknown
};

inline const FamilyList &shippedFamilies()
{
    static const FamilyList list = FamilyList::load(std::string(PLANISH_SOURCE_DIR) + "/resources").value();
    return list;
}

inline bool isGrouped(const std::string &family)
{
    static const std::set<std::string> kGrouped{"llama", "qwen3", "gemma", "gemma2", "mixtral", "qwen_moe", "phi3"};
    return kGrouped.count(family) > 0;
}

inline ModelInfo tinyModelOf(const TinyChoices &choices)
{
    ModelInfo model;
    model.family = choices.family;
    model.hiddenSize = 16;
    model.ffnSize = 24;
    model.numLayers = 2;
    model.numExperts = choices.family == "mixtral" || choices.family == "qwen_moe" ? 4 : 0;
    if (choices.heads) {
        model.numHeads = 4;
        model.numKvHeads = isGrouped(choices.family) ? 2 : 4;
        model.headDim = 4;
    }
    model.rotaryDim = choices.rotaryDim;
    model.postNorm = choices.postNorm;
    model.tiedEmbeddings = choices.tied;
    return model;
}

/// Shape of a dump name's tensor by what the name ends with; empty = not part of the tiny model.
inline std::vector<std::uint64_t> tinyShape(const std::string &name, std::uint64_t kvRows)
{
    const auto ends = [&](std::initializer_list<const char *> ways) {
        return std::any_of(ways.begin(), ways.end(), [&](const char *way) { return name.ends_with(way); });
    };
    if (name == "project_in" || name == "project_out")
        return {};
    if (ends({"q_norm", "k_norm"}))
        return {4};
    if (ends({"norm", "ln_1", "ln_2", "ln_attn", "ln_mlp"}))
        return {16};
    if (name == "embed" || name == "head" || name.starts_with("embed_"))
        return {20, 16};
    if (ends({".qkv_proj", "c_attn", "query_key_value"}))
        return {16 + 2 * kvRows, 16};
    if (ends({".k_proj", ".v_proj"}))
        return {kvRows, 16};
    if (ends({"gate_up_proj"}))
        return {48, 16};
    if (ends({"gate_proj", "up_proj", "fc1", "c_fc", "wi", "wi_0", "wi_1", "dense_h_to_4h"}))
        return {24, 16};
    if (ends({"down_proj", "fc2", "mlp.c_proj", ".wo", "dense_4h_to_h"}))
        return {16, 24};
    if (ends({".gate"}))
        return {4, 16};
    if (ends({"shared_expert_gate"}))
        return {1, 16};
    return {16, 16};
}

struct TinyModel {
    std::shared_ptr<TensorDump> dump = std::make_shared<TensorDump>();
    std::shared_ptr<MemoryCheckpoint> checkpoint = std::make_shared<MemoryCheckpoint>();
    std::shared_ptr<const Family> family;
    ModelGraph graph;

    const Edge &edge(const std::string &id) const
    {
        const Edge *found = graph.find({id});
        if (!found)
            throw std::logic_error("no edge " + id);
        return *found;
    }
};

inline void addTinyTensors(TinyModel &model, const TinyChoices &choices)
{
    const ModelInfo &facts = model.dump->info().model;
    const std::uint64_t kvRows = isGrouped(choices.family) ? 8 : 16;
    for (const auto &[name, ways] : model.family->names) {
        const std::vector<std::uint64_t> shape = tinyShape(name, kvRows);
        if (shape.empty() || ways.front().pattern.empty() || !ways.front().rowBegin.empty() || choices.absent.count(name))
            continue;
        const bool perExpert = name.find("{e}") != std::string::npos, perLayer = name.find("{l}") != std::string::npos;
        for (std::int64_t l = 0; l < (perLayer ? facts.numLayers : 1); ++l)
            for (std::int64_t e = 0; e < (perExpert ? facts.numExperts : 1); ++e) {
                const std::string stored = fillPattern(ways.front().pattern, {l, e});
                std::vector<std::uint64_t> side = shape;
                if (ways.front().inOut && side.size() == 2)
                    std::swap(side[0], side[1]);
                model.checkpoint->addWavy(stored, side);
                const bool norm = shape.size() == 1;
                const bool linearBias = model.family->normHasBias && !norm && perLayer;
                const bool free = name.ends_with(".k_proj") && !model.family->biasFree.empty();
                if ((norm && model.family->normHasBias) || (linearBias && !free))
                    model.checkpoint->addWavy(biasOfStored(stored), {shape[0]});
            }
    }
}

inline void addTinyEdges(TinyModel &model, const TinyChoices &choices)
{
    const ModelInfo &facts = model.dump->info().model;
    const auto add = [&](const std::string &id, std::int64_t layer, const std::string &site, std::size_t channels) {
        DumpEdge &edge = model.dump->edge(id, layer, site, channels);
        if (site == choices.producerOf)
            edge.producer = choices.producer;
    };
    for (std::int64_t l = 0; l < facts.numLayers; ++l) {
        const std::string layer = "layers." + std::to_string(l) + ".";
        for (const char *site : {"residual", "attn_in", "attn_out", "mlp_in", "q_pre", "q_post"})
            add(layer + site, l, site, 16);
        for (const char *site : {"k_pre", "k_post"})
            add(layer + site, l, site, isGrouped(choices.family) ? 8 : 16);
        if (facts.numExperts == 0)
            add(layer + "mlp_down", l, "mlp_down", 24);
        for (std::int64_t e = 0; e < facts.numExperts; ++e)
            add(layer + "experts." + std::to_string(e) + ".mlp_down", l, "mlp_down", 24);
    }
    add("head", -1, "head", 16);
}

/// Opens the tiny model. Where consumers are dropped, the dump states the others by name, as a dump with a forgotten reader does.
inline TinyModel tinyModel(const TinyChoices &choices)
{
    TinyModel model;
    model.family = shippedFamilies().find(choices.family);
    model.dump->editInfo().model = tinyModelOf(choices);
    addTinyTensors(model, choices);
    addTinyEdges(model, choices);
    const auto open = [&] {
        const auto weights = ResolvedWeights::resolve(model.dump, model.checkpoint, model.family, Prefer::None);
        if (!weights)
            throw std::logic_error(toText(weights.error()));
        auto graph = buildGraph(model.dump->info(), *weights, shippedFamilies());
        if (!graph)
            throw std::logic_error(toText(graph.error()));
        model.graph = std::move(*graph);
    };
    open();
    if (choices.dropConsumers.empty())
        return model;
    for (DumpEdge &edge : model.dump->editInfo().edges)
        for (const Consumer &consumer : model.edge(edge.id.value).consumers) {
            const std::string &name = consumer.tensor.value;
            const bool dropped = std::any_of(choices.dropConsumers.begin(), choices.dropConsumers.end(),
                                             [&](const std::string &role) { return name.ends_with("." + role); });
            if (!dropped)
                edge.consumers.push_back(name);
        }
    open();
    return model;
}

} // namespace planish::test
