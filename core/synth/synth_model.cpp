#include "core/synth/synth_model.h"

#include <cmath>

#include "core/synth/synth_shapes.h"
#include "core/transform/random_stream.h"

namespace planish {

namespace {

// Sizes of cli.md "synth": hidden = 12 * 8 and ffn = 20 * 8 have Hadamard orders that are no powers of two.
constexpr std::int64_t kHidden = 96, kHeads = 6, kKvHeads = 2, kHeadDim = 16, kFfn = 160, kVocab = 64, kPositions = 64;
// Channels of every attention and MLP norm whose gain is raised, so that the tiny model has outliers as real ones do.
constexpr std::int64_t kLoudChannel = 5, kLouderChannel = 71;

ModelInfo configOf(const SynthShape &shape, const SynthModelRequest &request)
{
    ModelInfo m;
    m.model = "synth-" + shape.family;
    m.createdBy = "planish synth";
    m.family = shape.family;
    m.hiddenSize = kHidden, m.numLayers = request.layers, m.numHeads = kHeads, m.headDim = kHeadDim, m.ffnSize = kFfn, m.vocabSize = kVocab;
    m.numKvHeads = shape.family == "falcon" ? 1 : (shape.rope ? kKvHeads : kHeads);
    m.numExperts = shape.experts;
    m.normKind = shape.rmsNorm ? "rmsnorm" : "layernorm";
    m.normOffset = shape.normOffset;
    m.activation = shape.activation == "gelu_tanh" ? "gelu" : shape.activation;
    m.postNorm = shape.postNorm, m.qkNorm = shape.qkNorm, m.parallelBlock = shape.parallel;
    m.tiedEmbeddings = shape.alwaysTied || request.tied;
    m.ropeStyle = shape.rope ? "half" : "none";
    m.ropeTheta = shape.rope ? 10000.0 : 0.0;
    m.rotaryDim = shape.rope ? kHeadDim : 0;
    m.normEps = 1e-5;
    m.architectures = {shape.architecture};
    return m;
}

class Filler {
public:
    Filler(SynthModel &model, std::uint64_t seed) : m_model(model), m_stream(seed, "synth", model.shape.family) {}

    void linear(const std::string &dumpName, std::int64_t outputs, std::int64_t inputs, bool bias)
    {
        const std::string name = storedName(dumpName);
        const double sigma = 1.0 / std::sqrt(double(inputs));
        MatrixD w = m_model.shape.inOut ? MatrixD(std::size_t(inputs), std::size_t(outputs)) : MatrixD(std::size_t(outputs), std::size_t(inputs));
        fill(w, sigma);
        m_model.tensors[name + ".weight"] = std::move(w);
        if (bias)
            vector(name + ".bias", outputs, 0.0, 0.1);
    }

    void table(const std::string &dumpName, std::int64_t rows, std::int64_t width)
    {
        MatrixD w(static_cast<std::size_t>(rows), std::size_t(width));
        fill(w, 1.0);
        m_model.tensors[storedName(dumpName) + ".weight"] = std::move(w);
    }

    void norm(const std::string &dumpName, std::int64_t width, bool loud)
    {
        const std::string name = storedName(dumpName);
        vector(name + ".weight", width, m_model.shape.normOffset ? 0.0 : 1.0, 0.1);
        if (loud) {
            m_model.tensors[name + ".weight"](0, kLoudChannel) += 6.0;
            m_model.tensors[name + ".weight"](0, kLouderChannel) += 24.0;
        }
        if (m_model.shape.normBias)
            vector(name + ".bias", width, 0.0, 0.2);
    }

    std::string storedName(const std::string &dumpName) const
    {
        const auto found = m_model.shape.stored.find(dumpName);
        return found == m_model.shape.stored.end() ? std::string() : found->second;
    }

    /// The next names are those of this layer and expert.
    std::string at(const std::string &pattern, std::int64_t layer, std::int64_t expert = -1) const { return layerName(pattern, layer, expert); }

private:
    void fill(MatrixD &matrix, double sigma)
    {
        for (double &value : matrix.values())
            value = sigma * m_stream.normal();
    }
    void vector(const std::string &name, std::int64_t n, double mean, double sigma)
    {
        MatrixD v(1, std::size_t(n));
        for (double &value : v.values())
            value = mean + sigma * m_stream.normal();
        m_model.tensors[name] = std::move(v);
    }

    SynthModel &m_model;
    RandomStream m_stream;
};

/// Moves tensors written under patterns ("model.layers.{l}.…") to the names of one layer.
void settle(SynthModel &model, std::int64_t layer, std::int64_t expert)
{
    std::map<std::string, MatrixD> settled;
    for (auto &[name, values] : model.tensors)
        settled[layerName(name, layer, expert)] = std::move(values);
    model.tensors = std::move(settled);
}

void fillAttention(Filler &fill, const SynthModel &model)
{
    const SynthShape &s = model.shape;
    const std::int64_t kv = model.config.numKvHeads * kHeadDim, q = kHeads * kHeadDim;
    if (s.fusedQkv) {
        fill.linear("layers.{l}.qkv_proj", q + 2 * kv, kHidden, s.linearBias);
    } else {
        fill.linear("layers.{l}." + s.q, q, kHidden, s.linearBias);
        fill.linear("layers.{l}." + s.k, kv, kHidden, s.keyBias);
        fill.linear("layers.{l}." + s.v, kv, kHidden, s.linearBias);
    }
    fill.linear("layers.{l}." + s.o, kHidden, q, s.linearBias);
    if (s.qkNorm) {
        fill.norm("layers.{l}.q_norm", kHeadDim, false);
        fill.norm("layers.{l}.k_norm", kHeadDim, false);
    }
}

void fillMlp(Filler &fill, SynthModel &model, std::int64_t layer)
{
    const SynthShape &s = model.shape;
    for (std::int64_t e = 0; e < s.experts; ++e) {
        const std::string prefix = "layers.{l}.experts.{e}.";
        fill.linear(prefix + "gate_proj", kFfn, kHidden, false);
        fill.linear(prefix + "up_proj", kFfn, kHidden, false);
        fill.linear(prefix + "down_proj", kHidden, kFfn, false);
        settle(model, layer, e);
    }
    if (s.experts) {
        fill.linear("layers.{l}.gate", s.experts, kHidden, false);
        return;
    }
    if (s.fusedGateUp)
        fill.linear("layers.{l}.gate_up_proj", 2 * kFfn, kHidden, false);
    else {
        if (s.gated)
            fill.linear("layers.{l}." + s.gate, kFfn, kHidden, false);
        fill.linear("layers.{l}." + s.up, kFfn, kHidden, s.linearBias);
    }
    fill.linear("layers.{l}." + s.down, kHidden, kFfn, s.linearBias);
}

void fillModel(SynthModel &model, const SynthModelRequest &request)
{
    const SynthShape &s = model.shape;
    Filler fill(model, request.seed);
    fill.table("embed", kVocab, kHidden);
    if (s.learnedPositions)
        fill.table("embed_positions", kPositions + s.positionOffset, kHidden);
    if (!s.embeddingNorm.empty())
        fill.norm(s.embeddingNorm, kHidden, true);
    for (std::int64_t layer = 0; layer < request.layers; ++layer) {
        fill.norm(s.attentionNorm, kHidden, true);
        if (s.mlpNorm != s.attentionNorm)
            fill.norm(s.mlpNorm, kHidden, true);
        fillAttention(fill, model);
        fillMlp(fill, model, layer);
        settle(model, layer, -1);
    }
    if (s.finalNorm)
        fill.norm(s.finalNormName, kHidden, false);
    if (!model.config.tiedEmbeddings && s.finalNorm)
        fill.table("head", kVocab, kHidden);
}

MatrixD rowsOf(const MatrixD &all, std::int64_t begin, std::int64_t end)
{
    MatrixD part(std::size_t(end - begin), all.cols());
    std::copy_n(all.data() + std::size_t(begin) * all.cols(), part.size(), part.data());
    return part;
}

MatrixD transposed(const MatrixD &in)
{
    MatrixD out(in.cols(), in.rows());
    for (std::size_t r = 0; r < in.rows(); ++r)
        for (std::size_t c = 0; c < in.cols(); ++c)
            out(c, r) = in(r, c);
    return out;
}

/// Where a canonical name stands: its stored tensor and, for fused storage, a row range.
struct Place {
    std::string stored;
    std::int64_t begin = 0, end = -1;
};

Place placeOf(const SynthModel &model, const std::string &dumpName)
{
    const SynthShape &s = model.shape;
    std::string pattern = dumpName;
    std::int64_t layer = -1, expert = -1;
    if (dumpName.starts_with("layers.")) {
        const std::size_t dot = dumpName.find('.', 7);
        layer = std::stoll(dumpName.substr(7, dot - 7));
        pattern = "layers.{l}" + dumpName.substr(dot);
        const std::size_t at = pattern.find(".experts.");
        if (at != std::string::npos) {
            const std::size_t next = pattern.find('.', at + 9);
            expert = std::stoll(pattern.substr(at + 9, next - at - 9));
            pattern = pattern.substr(0, at) + ".experts.{e}" + pattern.substr(next);
        }
    }
    const std::string role = pattern.substr(pattern.rfind("{l}.") == std::string::npos ? 0 : pattern.rfind("{l}.") + 4);
    const std::int64_t q = model.config.numHeads * model.config.headDim, kv = model.config.numKvHeads * model.config.headDim;
    Place place;
    if (s.fusedQkv && (role == s.q || role == s.k || role == s.v)) {
        place.begin = role == s.q ? 0 : role == s.k ? q : q + kv;
        place.end = role == s.q ? q : role == s.k ? q + kv : q + 2 * kv;
        pattern = "layers.{l}.qkv_proj";
    } else if (s.fusedGateUp && (role == s.gate || role == s.up)) {
        place.begin = role == s.gate ? 0 : model.config.ffnSize;
        place.end = place.begin + model.config.ffnSize;
        pattern = "layers.{l}.gate_up_proj";
    }
    if (pattern == "head" && model.config.tiedEmbeddings)
        pattern = model.tensors.contains(s.stored.contains("head") ? s.stored.at("head") + ".weight" : "lm_head.weight") ? "head" : "embed";
    const auto found = s.stored.find(pattern);
    place.stored = found != s.stored.end() ? layerName(found->second, layer, expert) : pattern == "head" ? "lm_head" : std::string();
    return place;
}

} // namespace

std::string layerName(const std::string &pattern, std::int64_t layer, std::int64_t expert)
{
    std::string name = pattern;
    if (const std::size_t at = name.find("{l}"); at != std::string::npos && layer >= 0)
        name.replace(at, 3, std::to_string(layer));
    if (const std::size_t at = name.find("{e}"); at != std::string::npos && expert >= 0)
        name.replace(at, 3, std::to_string(expert));
    return name;
}

MatrixD SynthModel::weight(const std::string &dumpName) const
{
    const Place place = placeOf(*this, dumpName);
    const auto found = tensors.find(place.stored + ".weight");
    if (found == tensors.end())
        return {};
    const bool linear = found->second.rows() > 1 && !dumpName.starts_with("embed") && dumpName != "head";
    MatrixD all = shape.inOut && linear ? transposed(found->second) : found->second;
    return place.end < 0 ? all : rowsOf(all, place.begin, place.end);
}

MatrixD SynthModel::bias(const std::string &dumpName) const
{
    const Place place = placeOf(*this, dumpName);
    const auto found = tensors.find(place.stored + ".bias");
    if (found == tensors.end())
        return {};
    if (place.end < 0)
        return found->second;
    MatrixD part(1, std::size_t(place.end - place.begin));
    std::copy_n(found->second.data() + place.begin, part.size(), part.data());
    return part;
}

bool SynthModel::has(const std::string &dumpName) const { return tensors.contains(placeOf(*this, dumpName).stored + ".weight"); }

std::vector<std::string> synthFamilies()
{
    std::vector<std::string> keys;
    for (const SynthShape &shape : synthShapes())
        keys.push_back(shape.family);
    return keys;
}

Expected<SynthModel> makeSynthModel(const SynthModelRequest &request)
{
    for (const SynthShape &shape : synthShapes()) {
        if (shape.family != request.family)
            continue;
        SynthModel model{shape, configOf(shape, request), {}};
        fillModel(model, request);
        return model;
    }
    std::string known;
    for (const std::string &key : synthFamilies())
        known += (known.empty() ? "" : ", ") + key;
    return usageError("--family " + request.family, "no tiny model of this family", "one of " + known);
}

} // namespace planish
