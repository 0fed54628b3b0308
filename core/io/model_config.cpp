#include "core/io/model_config.h"

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <optional>
#include <string_view>

#include "core/io/raw_file.h"

namespace planish {

namespace {

using Json = nlohmann::json;

/// The first of several names architectures use for one thing; remembers that it was stated.
class ConfigReader {
public:
    ConfigReader(const Json &config, ModelInfo &model) : m_config(config), m_model(model) {}

    const Json *find(std::initializer_list<std::string_view> names, std::string_view key)
    {
        for (const std::string_view name : names) {
            const auto found = m_config.find(std::string(name));
            if (found == m_config.end() || found->is_null())
                continue;
            if (!key.empty())
                m_model.stated.emplace_back(key);
            return &*found;
        }
        return nullptr;
    }
    void integer(std::int64_t &out, std::string_view key, std::initializer_list<std::string_view> names)
    {
        const Json *value = find(names, key);
        if (value != nullptr && value->is_number_integer())
            out = value->get<std::int64_t>();
    }
    void number(double &out, std::string_view key, std::initializer_list<std::string_view> names)
    {
        const Json *value = find(names, key);
        if (value != nullptr && value->is_number())
            out = value->get<double>();
    }
    void text(std::string &out, std::string_view key, std::initializer_list<std::string_view> names)
    {
        const Json *value = find(names, key);
        if (value != nullptr && value->is_string())
            out = value->get<std::string>();
    }
    void flag(bool &out, std::string_view key, std::initializer_list<std::string_view> names)
    {
        const Json *value = find(names, key);
        if (value != nullptr && value->is_boolean())
            out = value->get<bool>();
    }

private:
    const Json &m_config;
    ModelInfo &m_model;
};

void readSizes(ConfigReader &reader, ModelInfo &model)
{
    reader.integer(model.hiddenSize, "hidden_size", {"hidden_size", "n_embd", "d_model"});
    reader.integer(model.numLayers, "num_layers", {"num_hidden_layers", "n_layer", "num_layers", "encoder_layers"});
    reader.integer(model.numHeads, "num_heads", {"num_attention_heads", "n_head", "num_heads", "encoder_attention_heads"});
    reader.integer(model.numKvHeads, "num_kv_heads", {"num_key_value_heads", "num_kv_heads"});
    reader.integer(model.headDim, "head_dim", {"head_dim", "d_kv"});
    reader.integer(model.ffnSize, "ffn_size", {"intermediate_size", "n_inner", "ffn_dim", "encoder_ffn_dim", "d_ff"});
    reader.integer(model.vocabSize, "vocab_size", {"vocab_size"});
    reader.integer(model.numExperts, "num_experts", {"num_local_experts", "num_experts"});
    if (model.numKvHeads == 0)
        model.numKvHeads = model.numHeads;
    if (model.headDim == 0 && model.numHeads > 0)
        model.headDim = model.hiddenSize / model.numHeads;
}

void readNorms(ConfigReader &reader, ModelInfo &model)
{
    const bool rms = reader.find({"rms_norm_eps"}, {}) != nullptr;
    const bool layer = reader.find({"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"}, {}) != nullptr;
    if (rms || layer)
        model.normKind = rms ? "rmsnorm" : "layernorm";
    reader.number(model.normEps, "norm_eps", {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"});
    bool before = true;
    reader.flag(before, "post_norm", {"do_layer_norm_before"});
    model.postNorm = !before;
    reader.flag(model.tiedEmbeddings, "tied_embeddings", {"tie_word_embeddings"});
    reader.text(model.activation, "activation", {"hidden_act", "hidden_activation", "activation_function"});
}

void readRope(ConfigReader &reader, ModelInfo &model)
{
    reader.number(model.ropeTheta, "rope_theta", {"rope_theta", "rotary_emb_base"});
    reader.integer(model.rotaryDim, "rotary_dim", {"rotary_dim"});
    double fraction = 0.0;
    reader.number(fraction, {}, {"partial_rotary_factor", "rotary_pct"});
    if (model.rotaryDim == 0 && fraction > 0.0)
        model.rotaryDim = static_cast<std::int64_t>(fraction * static_cast<double>(model.headDim));
    if (const Json *scaling = reader.find({"rope_scaling"}, "rope_scaling"))
        model.ropeScaling = scaling->dump();
    // transformers 5 keeps both in one object.
    if (const Json *parameters = reader.find({"rope_parameters"}, {}); parameters != nullptr && parameters->is_object()) {
        ConfigReader inner(*parameters, model);
        inner.number(model.ropeTheta, "rope_theta", {"rope_theta"});
        std::string kind;
        inner.text(kind, {}, {"rope_type"});
        if (!kind.empty() && kind != "default")
            model.ropeScaling = parameters->dump();
    }
}

Expected<Json> parseFile(const std::string &path)
{
    constexpr std::uint64_t kLargest = std::uint64_t{16} << 20;
    const Expected<RawFile> file = RawFile::open(path);
    if (!file)
        return tl::make_unexpected(file.error());
    if (file->size() > kLargest)
        return dataError(path, "has " + std::to_string(file->size()) + " bytes", "a config.json of at most 16 MiB");
    std::string text(static_cast<std::size_t>(file->size()), '\0');
    if (Expected<void> read = file->read(0, std::as_writable_bytes(std::span(text.data(), text.size()))); !read)
        return tl::make_unexpected(read.error());
    Json config = Json::parse(text, nullptr, false);
    if (config.is_discarded() || !config.is_object())
        return dataError(path, "is no valid JSON object", "config.json as Hugging Face writes it");
    return config;
}

std::string quantizerName(const Json &quantization)
{
    const auto method = quantization.is_object() ? quantization.find("quant_method") : quantization.end();
    return quantization.is_object() && method != quantization.end() && method->is_string()
               ? " (" + method->get<std::string>() + ")"
               : "";
}

} // namespace

Expected<ModelInfo> readModelConfig(const std::string &path)
{
    const Expected<Json> parsed = parseFile(path);
    if (!parsed)
        return tl::make_unexpected(parsed.error());
    const auto quantization = parsed->find("quantization_config");
    if (quantization != parsed->end() && !quantization->is_null())
        return dataError(path,
                         "has a quantization_config" + quantizerName(*quantization) + ": the checkpoint is already quantized",
                         "the unquantized checkpoint");
    ModelInfo model;
    // Models of several modalities keep the language part one level down.
    const auto inner = parsed->find("text_config");
    const Json &config = inner != parsed->end() && inner->is_object() ? *inner : *parsed;
    ConfigReader reader(config, model);
    readSizes(reader, model);
    readNorms(reader, model);
    readRope(reader, model);
    if (const auto names = parsed->find("architectures"); names != parsed->end() && names->is_array())
        for (const Json &name : *names)
            if (name.is_string())
                model.architectures.push_back(name.get<std::string>());
    ConfigReader(*parsed, model).text(model.model, {}, {"_name_or_path", "model_type"});
    return model;
}

} // namespace planish
