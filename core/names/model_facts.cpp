#include "core/names/model_facts.h"

#include <cmath>
#include <optional>

namespace planish {

namespace {

struct Sides {
    const std::string &dumpFile, &configFile;
    std::optional<Error> conflict;

    void differ(const char *field, const std::string &dump, const std::string &config)
    {
        if (!conflict)
            conflict = Error{ErrorCode::Data,
                             configFile,
                             std::string(field) + " is " + config + ", but /model of " + dumpFile + " says " + dump,
                             "both must describe one model",
                             {}};
    }
};

void merge(std::int64_t &dump, std::int64_t config, const char *field, Sides &sides)
{
    if (dump > 0 && config > 0 && dump != config)
        sides.differ(field, std::to_string(dump), std::to_string(config));
    if (dump <= 0)
        dump = config;
}

void merge(std::string &dump, const std::string &config, const char *field, Sides &sides)
{
    if (!dump.empty() && !config.empty() && dump != config)
        sides.differ(field, "'" + dump + "'", "'" + config + "'");
    if (dump.empty())
        dump = config;
}

void merge(double &dump, double config, const char *field, Sides &sides)
{
    // Dumps keep eps as the model's float32, config.json as a decimal: equal to float precision is equal.
    if (dump > 0 && config > 0 && std::abs(dump - config) > 1e-6 * std::max(dump, config))
        sides.differ(field, std::to_string(dump), std::to_string(config));
    if (dump <= 0)
        dump = config;
}

/// "gelu_new", "gelu_pytorch_tanh" and "gelu" differ in the last bits, not in what may be folded through them.
std::string activationClass(const std::string &name)
{
    for (const char *kind : {"gelu", "silu", "relu"})
        if (name.find(kind) != std::string::npos)
            return kind;
    return name == "swish" ? "silu" : name;
}

void mergeActivation(std::string &dump, const std::string &config, Sides &sides)
{
    if (!dump.empty() && !config.empty() && activationClass(dump) != activationClass(config))
        sides.differ("hidden_act", "'" + dump + "'", "'" + config + "'");
    if (dump.empty())
        dump = config;
}

} // namespace

Expected<ModelInfo> completeModel(const ModelInfo &dump, const ModelInfo &config, const std::string &dumpFile,
                                  const std::string &configFile)
{
    Sides sides{dumpFile, configFile, std::nullopt};
    ModelInfo model = dump;
    merge(model.hiddenSize, config.hiddenSize, "hidden_size", sides);
    merge(model.numLayers, config.numLayers, "num_hidden_layers", sides);
    merge(model.numHeads, config.numHeads, "num_attention_heads", sides);
    merge(model.numKvHeads, config.numKvHeads, "num_key_value_heads", sides);
    merge(model.headDim, config.headDim, "head_dim", sides);
    merge(model.ffnSize, config.ffnSize, "intermediate_size", sides);
    merge(model.vocabSize, config.vocabSize, "vocab_size", sides);
    merge(model.numExperts, config.numExperts, "num_local_experts", sides);
    merge(model.rotaryDim, config.rotaryDim, "rotary_dim", sides);
    merge(model.ropeTheta, config.ropeTheta, "rope_theta", sides);
    merge(model.normEps, config.normEps, "norm_eps", sides);
    merge(model.normKind, config.normKind, "norm_kind", sides);
    merge(model.ropeStyle, config.ropeStyle, "rope_style", sides);
    mergeActivation(model.activation, config.activation, sides);
    // Flags have no third state "unknown": either side may set one.
    model.postNorm = dump.postNorm || config.postNorm;
    model.tiedEmbeddings = dump.tiedEmbeddings || config.tiedEmbeddings;
    model.qkNorm = dump.qkNorm || config.qkNorm;
    model.parallelBlock = dump.parallelBlock || config.parallelBlock;
    model.normOffset = std::max(dump.normOffset, config.normOffset);
    if (model.ropeScaling.empty())
        model.ropeScaling = config.ropeScaling;
    if (model.architectures.empty())
        model.architectures = config.architectures;
    if (model.numKvHeads == 0)
        model.numKvHeads = model.numHeads;
    if (sides.conflict)
        return tl::make_unexpected(*sides.conflict);
    return model;
}

} // namespace planish
