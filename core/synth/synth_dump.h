// Dumps for tests and demonstrations: Gaussian activations of any size with planted outliers, their truth under /planted;
// and the dump of a tiny model's own forward pass.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/io/progress.h"
#include "core/synth/reference_forward.h"

namespace planish {

struct SynthDumpRequest {
    std::string out;
    std::int64_t tokens = 512, channels = 512, layers = 2;
    std::uint64_t seed = 0;
};

/// One planted outlier: what kind of finding should appear, and where.
struct Planted {
    std::string kind, edge;
    std::int64_t row = -1, channel = -1;
    double value = 0;
};

/// attn_in, mlp_down and residual of every layer, [tokens, channels] in fp16, weights of every consumer. Memory does not grow with tokens.
Expected<std::vector<Planted>> writeSynthDump(const SynthDumpRequest &request, std::stop_token stop, const ProgressSink &progress);

/// Token ids and request lengths of the forward pass of a tiny model: requests of at most 32 tokens.
struct SynthTokens {
    std::vector<std::int32_t> ids, lengths;
};
SynthTokens synthTokens(const SynthModel &model, std::int64_t tokens, std::uint64_t seed);

/// The dump of a tiny model's forward pass (f32 edges). Weights stay in the checkpoint.
Expected<void> writeForwardDump(const std::string &out, const SynthModel &model, const SynthTokens &tokens, const ForwardResult &forward);

} // namespace planish
