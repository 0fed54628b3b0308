#include "core/run/run_synth.h"

#include "core/io/atomic_file.h"
#include "core/io/number_decode.h"
#include "core/io/safetensors.h"
#include "core/synth/synth_dump.h"
#include "core/transform/equivalence.h"

namespace planish {

namespace {

/// A checkpoint holds f32, so the forward pass must see exactly those values.
void roundTensors(SynthModel &model)
{
    for (auto &[name, values] : model.tensors) {
        for (double &value : values.values())
            value = roundToStored(value, StoredType::F32);
    }
}

bool isVector(const std::string &name, const MatrixD &values)
{
    return values.rows() == 1 && (name.ends_with(".bias") || name.find("norm") != std::string::npos || name.find("ln_") != std::string::npos ||
                                  name.find("LayerNorm") != std::string::npos);
}

} // namespace

Expected<void> writeSynthCheckpoint(const SynthModel &model, const std::string &file)
{
    std::vector<TensorSpec> specs;
    for (const auto &[name, values] : model.tensors) {
        std::vector<std::uint64_t> shape{values.rows(), values.cols()};
        if (isVector(name, values))
            shape = {values.cols()};
        specs.push_back({name, StoredType::F32, shape});
    }
    auto writer = SafetensorsWriter::create(file, specs, {{"format", "pt"}, {"made_by", "planish synth"}});
    if (!writer)
        return tl::make_unexpected(writer.error());
    for (const auto &[name, values] : model.tensors) {
        std::vector<float> stored(values.values().begin(), values.values().end());
        if (auto done = writer->writeTensor(name, std::as_bytes(std::span(stored))); !done)
            return done;
    }
    return writer->finish();
}

Expected<std::vector<std::string>> runSynth(const SynthRequest &request, std::stop_token stop, const ProgressSink &progress)
{
    if (request.modelOut.empty()) {
        const SynthDumpRequest dump{request.out, request.tokens, request.channels, request.layers, request.seed};
        auto planted = writeSynthDump(dump, stop, progress);
        if (!planted)
            return tl::make_unexpected(planted.error());
        return std::vector<std::string>{request.out};
    }
    auto model = makeSynthModel({request.family, request.layers, request.tied, request.seed});
    if (!model)
        return tl::make_unexpected(model.error());
    roundTensors(*model);
    const SynthTokens tokens = synthTokens(*model, request.tokens, request.seed);
    const ForwardResult forward = referenceForward(*model, tokens.ids, tokens.lengths);
    if (stop.stop_requested())
        return cancelled("synth");
    if (auto written = writeForwardDump(request.out, *model, tokens, forward); !written)
        return tl::make_unexpected(written.error());
    if (auto written = writeSynthCheckpoint(*model, request.modelOut); !written) {
        removeQuietly(request.out);
        return tl::make_unexpected(written.error());
    }
    return std::vector<std::string>{request.out, request.modelOut};
}

} // namespace planish
