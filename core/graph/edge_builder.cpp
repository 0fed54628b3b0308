#include "core/graph/edge_builder.h"

#include <algorithm>

#include "core/graph/ties.h"

namespace planish {

namespace {

const FamilyEdge *familyEdgeOf(const EdgePlace &place, const EdgeSources &sources)
{
    if (!sources.family)
        return nullptr;
    return sources.family->edge(place.key, sources.model, [&](const std::string &pattern) {
        return sources.known.has && sources.known.has(fillPattern(pattern, place.numbers));
    });
}

Consumer consumerOf(const std::string &text, const DumpEdge &edge, const EdgeSources &sources, std::vector<std::string> &notes)
{
    Consumer consumer;
    if (!splitRowRange(text, consumer.tensor.value, consumer.rows.begin, consumer.rows.end))
        notes.push_back(edge.id.value + ": consumer '" + text + "' is no name or name[a:b]");
    consumer.role = roleOf(consumer.tensor.value);
    const ResolvedTensor *found = sources.weights.find(consumer.tensor);
    consumer.present = found && found->shape.size() == 2 && found->shape[1] == edge.channels;
    if (consumer.present && consumer.rows.end > static_cast<std::int64_t>(found->shape[0])) {
        notes.push_back(edge.id.value + ": consumer '" + text + "' names rows beyond the " + std::to_string(found->shape[0]) +
                        " of its tensor");
        consumer.present = false;
    }
    if (consumer.present)
        consumer.bias = sources.weights.biasOf(consumer.tensor.value);
    return consumer;
}

/// Consumers as the dump names them. Where the dump names none, or a foreign layout named what it could guess, the family adds
/// the rest; what a native dump leaves out on purpose stays another reader.
void addReaders(Edge &edge, const DumpEdge &dumpEdge, const EdgePlace &place, const FamilyEdge *familyEdge,
                const EdgeSources &sources, std::vector<std::string> &notes)
{
    std::vector<std::string> covered;
    for (const std::string &text : dumpEdge.consumers) {
        edge.consumers.push_back(consumerOf(text, dumpEdge, sources, notes));
        covered.push_back(edge.consumers.back().tensor.value);
    }
    const bool native = sources.dump.layout == "native";
    const std::vector<FamilyReader> readers =
        familyEdge ? readersOfEdge(*sources.family, *familyEdge, place, sources.known) : std::vector<FamilyReader>{};
    for (const FamilyReader &reader : readers) {
        auto same = std::find_if(edge.consumers.begin(), edge.consumers.end(),
                                 [&](const Consumer &consumer) { return consumer.tensor.value == reader.name; });
        if (same != edge.consumers.end() && reader.kind == "router")
            same->role = "router";
        if (coversReader(*sources.family, place, reader.name, covered))
            continue;
        const bool joins =
            reader.kind != "residual" && (dumpEdge.consumers.empty() || (!native && sources.known.has(reader.name)));
        if (!joins) {
            edge.otherReaders.push_back({reader.name, reader.kind});
            continue;
        }
        edge.consumers.push_back(consumerOf(reader.name, dumpEdge, sources, notes));
        if (reader.kind == "router")
            edge.consumers.back().role = "router";
    }
    const bool shortcut = std::any_of(edge.otherReaders.begin(), edge.otherReaders.end(),
                                      [](const OtherReader &reader) { return reader.kind == "residual"; });
    if (sources.model.postNorm && !shortcut && (edge.site == "attn_in" || edge.site == "mlp_in"))
        edge.otherReaders.push_back({"residual", "residual"});
}

std::string activationKind(const std::string &activation)
{
    for (const char *kind : {"gelu", "silu", "relu"})
        if (activation.find(kind) != std::string::npos)
            return kind;
    return activation == "swish" ? "silu" : activation;
}

/// The family says where the nonlinearity stands, the model which one it is (OPT built with GELU, BERT with ReLU).
std::string betweenOf(const Edge &edge, const FamilyEdge *familyEdge, const ModelInfo &model)
{
    if (!familyEdge || familyEdge->between.empty()) {
        if (edge.site == "attn_out")
            return "attention";
        const bool score = edge.site.starts_with("q_") || edge.site.starts_with("k_") || edge.site == "v";
        return score ? "identity" : "unknown";
    }
    const std::string &stated = familyEdge->between;
    const bool plain = stated == "relu" || stated == "gelu" || stated == "silu";
    return plain && !model.activation.empty() ? activationKind(model.activation) : stated;
}

NormProducer normOf(const std::string &name, const EdgeSources &sources)
{
    NormProducer norm;
    norm.name = {name};
    const auto stored = sources.dump.norms.find(name);
    const bool inDump = stored != sources.dump.norms.end();
    norm.kind = inDump && !stored->second.kind.empty()                ? stored->second.kind
                : sources.family && !sources.family->normKind.empty() ? sources.family->normKind
                                                                      : sources.model.normKind;
    norm.offset = inDump ? stored->second.offset : sources.family ? sources.family->normOffset : sources.model.normOffset;
    norm.hasGain = sources.weights.find({name}) != nullptr;
    norm.hasBias = !sources.weights.biasOf(name).empty();
    return norm;
}

/// A part of a fused tensor is named by the whole tensor and its rows where the family knows the whole one.
void nameWholeTensor(const ResolvedTensor &part, TensorName &tensor, RowRangeOf &rows, const ResolvedWeights &weights)
{
    if (part.rows.whole())
        return;
    const auto sameTensor = [&](const ResolvedTensor &other) {
        if (part.inDump)
            return other.inDump && other.inDump->path == part.inDump->path && other.shape.size() == 2;
        return !other.inDump && other.checkpointName == part.checkpointName;
    };
    for (const auto &[name, other] : weights.tensors())
        if (other.rows.whole() && sameTensor(other)) {
            tensor = other.name;
            rows = {part.rows.begin, part.rows.end};
            return;
        }
}

Producer linearOf(const std::string &name, const ResolvedTensor &found, const Edge &edge, const EdgePlace &place,
                  const FamilyEdge *familyEdge, const EdgeSources &sources)
{
    const std::string between = betweenOf(edge, familyEdge, sources.model);
    const bool hasBias = !sources.weights.biasOf(name).empty();
    if (between.find("(gate)*up") != std::string::npos) {
        ElementwiseProducer product;
        product.up = {name};
        product.upRows = {};
        product.hasBias = hasBias;
        product.between = between;
        const std::string gate = familyEdge && !familyEdge->gate.empty()
                                     ? namesOfRole(familyEdge->gate, place, *sources.family, sources.known).front()
                                     : std::string();
        if (sources.weights.find({gate}))
            product.gate = {gate};
        return product;
    }
    LinearProducer linear;
    linear.name = {name};
    linear.tensor = {name};
    linear.hasBias = hasBias;
    linear.between = between;
    linear.outputs = found.shape.empty() ? 0 : static_cast<std::int64_t>(found.shape[0]);
    linear.interleaved = found.rows.stride > 0;
    nameWholeTensor(found, linear.tensor, linear.rows, sources.weights);
    return linear;
}

Producer producerOf(const Edge &edge, const DumpEdge &dumpEdge, const EdgePlace &place, const FamilyEdge *familyEdge,
                    const EdgeSources &sources)
{
    if (edge.site == "residual" || dumpEdge.producer == "residual" || dumpEdge.producer.starts_with("stream:"))
        return StreamProducer{{dumpEdge.producer.starts_with("stream:") ? dumpEdge.producer : "stream:residual"}};
    std::string name = dumpEdge.producer;
    if (name.empty() && familyEdge)
        name = fillPattern(familyEdge->producer, place.numbers);
    if (name.empty())
        return UnknownProducer{};
    const ResolvedTensor *found = sources.weights.find({name});
    if (found)
        return found->shape.size() == 1 ? Producer(normOf(name, sources))
                                        : linearOf(name, *found, edge, place, familyEdge, sources);
    // A norm without a learned scale is in no file, and yet known.
    const bool normSite = edge.site == "attn_in" || edge.site == "mlp_in" || edge.site == "head";
    if (normSite && sources.family && !sources.family->normHasScale)
        return normOf(name, sources);
    return UnknownProducer{name};
}

bool listed(const std::vector<std::string> &roles, const std::string &role)
{
    return std::find(roles.begin(), roles.end(), role) != roles.end();
}

void addStreams(Edge &edge, const EdgePlace &place, const Family &family)
{
    for (const FamilyStream &stream : family.streams) {
        const std::string id = "stream:" + stream.name;
        if (listed(stream.readers, edge.site) && place.prefix.empty())
            edge.streamRead = id;
        const bool writes =
            !edge.consumers.empty() && std::all_of(edge.consumers.begin(), edge.consumers.end(), [&](const Consumer &consumer) {
                return listed(stream.writers, consumer.role) || listed(stream.writers, "experts.{e}." + consumer.role);
            });
        if (writes && place.prefix.empty())
            edge.streamWritten = id;
    }
}

std::string partnerOf(const Edge &edge, const EdgePlace &place, const EdgeSources &sources)
{
    const bool query = edge.site == "q_pre", key = edge.site == "k_pre";
    if (!sources.family || (!query && !key))
        return {};
    EdgePlace other = place;
    other.key = place.key.substr(0, place.key.size() - 5) + (query ? "k_pre" : "q_pre");
    const FamilyEdge *edgeThere = familyEdgeOf(other, sources);
    return edgeThere ? fillPattern(edgeThere->producer, place.numbers) : std::string();
}

} // namespace

std::string ropeStyleOf(const ModelInfo &model, const Family *family)
{
    return !model.ropeStyle.empty() || !family ? model.ropeStyle : family->ropeStyle;
}

Edge buildEdge(const DumpEdge &dumpEdge, const EdgeSources &sources, std::vector<std::string> &notes)
{
    Edge edge;
    edge.id = dumpEdge.id;
    edge.layer = dumpEdge.layer;
    edge.site = dumpEdge.site;
    edge.channels = dumpEdge.channels;
    edge.rows = dumpEdge.rows;
    edge.basis = dumpEdge.basis;
    const EdgePlace place = placeOfEdge(edge.id.value, edge.layer, edge.site, sources.family);
    const FamilyEdge *familyEdge = familyEdgeOf(place, sources);
    edge.producer = producerOf(edge, dumpEdge, place, familyEdge, sources);
    addReaders(edge, dumpEdge, place, familyEdge, sources, notes);
    const bool normBehind = std::holds_alternative<NormProducer>(edge.producer);
    edge.ties = tiesOf(edge.site, edge.channels, sources.model, ropeStyleOf(sources.model, sources.family), normBehind);
    edge.partner = {partnerOf(edge, place, sources)};
    if (sources.family)
        addStreams(edge, place, *sources.family);
    if (const auto *stream = std::get_if<StreamProducer>(&edge.producer))
        edge.streamRead = stream->stream.value;
    return edge;
}

} // namespace planish
