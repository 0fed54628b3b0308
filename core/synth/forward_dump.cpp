// The dump of a tiny model's forward pass: the same native layout a user's exporter writes.
#include "core/io/dump_writer.h"
#include "core/synth/synth_dump.h"
#include "core/transform/random_stream.h"

namespace planish {

namespace {

constexpr std::int32_t kRequestTokens = 32;

TokenTable tableOf(const SynthTokens &tokens)
{
    TokenTable table;
    table.hasRequest = table.hasPosition = table.hasPhase = table.hasId = true;
    table.id = tokens.ids;
    for (std::size_t r = 0; r < tokens.lengths.size(); ++r) {
        for (std::int32_t p = 0; p < tokens.lengths[r]; ++p) {
            table.request.push_back(std::int32_t(r));
            table.position.push_back(p);
            table.phase.push_back(0);
            table.mask.push_back(1);
        }
    }
    return table;
}

struct Named {
    std::string site, producer;
    std::vector<std::string> consumers;
    std::int64_t layer = -1;
};

/// Producer and consumers of an edge by the model's own names; empty where only the family knows.
Named named(const SynthModel &model, const std::string &edge)
{
    const SynthShape &s = model.shape;
    if (edge == "head")
        return {"head", s.finalNormName, {"head"}, -1};
    const std::size_t dot = edge.find('.', 7);
    Named n;
    n.layer = std::stoll(edge.substr(7, dot - 7));
    const std::string prefix = edge.substr(0, dot + 1);
    n.site = edge.substr(edge.rfind('.') + 1);
    auto full = [&](const std::string &role) { return prefix + role; };
    const bool fused = s.fusedQkv, expert = edge.find(".experts.") != std::string::npos;
    if (n.site == "residual") {
        n.producer = "stream:residual";
    } else if (expert) {
        const std::string mine = edge.substr(0, edge.rfind('.') + 1);
        n.producer = mine + "up_proj";
        n.consumers = {mine + "down_proj"};
    } else if (n.site == "attn_in") {
        if (!s.postNorm)
            n.producer = layerName(s.attentionNorm, n.layer);
        else
            n.producer = n.layer == 0 ? s.embeddingNorm : layerName(s.mlpNorm, n.layer - 1);
        n.consumers = {full(s.q), full(s.k), full(s.v)};
    } else if (n.site == "attn_out") {
        n.producer = full(s.v);
        n.consumers = {full(s.o)};
    } else if (n.site == "mlp_in") {
        n.producer = layerName(s.postNorm ? s.attentionNorm : s.mlpNorm, n.layer);
        n.consumers = s.gated && !s.experts ? std::vector<std::string>{full(s.gate), full(s.up)} : std::vector<std::string>{full(s.up)};
    } else {
        n.producer = full(s.up);
        n.consumers = {full(s.down)};
    }
    // Fused and routed tensors are named by the family alone.
    if ((fused && n.site == "attn_in") || s.fusedGateUp || s.experts) {
        if (!(expert || n.site == "attn_out" || n.site == "residual"))
            n.consumers.clear();
    }
    return n;
}

} // namespace

SynthTokens synthTokens(const SynthModel &model, std::int64_t tokens, std::uint64_t seed)
{
    SynthTokens out;
    RandomStream stream(seed, "synth", "tokens");
    while (tokens > 0) {
        const std::int32_t length = std::int32_t(std::min<std::int64_t>(tokens, kRequestTokens));
        out.lengths.push_back(length);
        for (std::int32_t t = 0; t < length; ++t)
            out.ids.push_back(std::int32_t(stream.below(std::uint64_t(model.config.vocabSize))));
        tokens -= length;
    }
    return out;
}

Expected<void> writeForwardDump(const std::string &out, const SynthModel &model, const SynthTokens &tokens, const ForwardResult &forward)
{
    auto writer = DumpWriter::create(out, {.model = model.config, .tokens = tableOf(tokens), .root = {}});
    if (!writer)
        return tl::make_unexpected(writer.error());
    for (const auto &[name, captured] : forward.edges) {
        const Named facts = named(model, name);
        DumpEdge edge;
        edge.id = {name};
        edge.site = facts.site;
        edge.layer = facts.layer;
        edge.producer = facts.producer;
        edge.consumers = facts.consumers;
        edge.rows = captured.values.rows();
        edge.channels = captured.values.cols();
        edge.rowToToken = captured.rowToToken;
        if (auto added = writer->addEdge(edge, {.type = StoredType::F32}); !added)
            return added;
        if (auto written = writer->appendRows(edge.id, ConstViewD(captured.values.view())); !written)
            return written;
    }
    return writer->finish();
}

} // namespace planish
