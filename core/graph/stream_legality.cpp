#include "core/graph/stream_legality.h"

#include <algorithm>

namespace planish {

namespace {

class StreamCheck {
public:
    StreamCheck(const Stream &stream, const StreamFold &fold, const std::vector<OtherReader> &required,
                const PlacementContext &context)
        : m_stream(stream), m_fold(fold), m_required(required), m_context(context)
    {
    }

    std::vector<Refusal> run()
    {
        if (m_fold.kind == StreamFold::Kind::Scale) {
            refuse("residual_reader", m_stream.id.value,
                   "norms are not scale free per channel: no diagonal change of the stream");
            return std::move(m_faults);
        }
        checkWriters();
        checkReaders();
        if (m_fold.kind == StreamFold::Kind::Rotation)
            checkNorms();
        return std::move(m_faults);
    }

private:
    void checkWriters()
    {
        for (const TensorName &writer : m_stream.writers) {
            if (std::find(m_fold.writers.begin(), m_fold.writers.end(), writer) != m_fold.writers.end())
                continue;
            const bool table = writer.value == "embed" || writer.value == "embed_types";
            const char *rule = table                                       ? "embedding_left"
                               : writer.value.ends_with("embed_positions") ? "position_embedding_left"
                                                                           : "residual_basis";
            refuse(rule, writer.value, "writer " + writer.value + " stays in the old basis");
            return;
        }
        if (!m_fold.biasesRewritten)
            refuse("bias_not_rewritten", "biases of the writers", "the biases of the writers stay in the old basis");
    }

    void checkReaders()
    {
        for (const EdgeId &reader : m_stream.readers) {
            if (std::find(m_fold.readers.begin(), m_fold.readers.end(), reader) != m_fold.readers.end())
                continue;
            refuse(reader.value == "head" ? "head_left" : "residual_basis", reader.value,
                   "reader " + reader.value + " stays in the old basis");
            return;
        }
        for (const OtherReader &reader : m_required) {
            if (std::find(m_fold.otherReaders.begin(), m_fold.otherReaders.end(), TensorName{reader.name}) !=
                m_fold.otherReaders.end())
                continue;
            const char *rule = reader.kind == "router" ? "router_not_covered" : "consumers_not_covered";
            refuse(rule, reader.name, "the " + reader.kind + " " + reader.name + " stays in the old basis");
            return;
        }
        if (m_stream.tied && !m_fold.headUntied && m_fold.kind == StreamFold::Kind::Rotation)
            refuse("tied_head", "head", "the head and the embedding are still one table");
    }

    void checkNorms()
    {
        const Family *family = m_context.family;
        if (isPostNorm()) {
            refuse("post_norm", "norms", "gain, bias and mean of the norms stand on the stream itself");
            return;
        }
        if (family && std::any_of(family->streams.begin(), family->streams.end(),
                                  [](const auto &each) { return each.postNormGainOnWriter; }))
            refuse("post_norm_gain_on_writer", "post_attention_layernorm",
                   "the norms behind the writers keep their gain on the stream");
        if (!m_fold.gainsAbsorbed)
            refuse("norm_gain_between", "norms", "the gains of the norms are not absorbed by the readers");
        if (!subtractsMean()) {
            if (m_fold.meanRemoved)
                refuse("mean_centring_of_an_rmsnorm_model", "embed",
                       "an RMSNorm does not subtract the mean, so removing it changes the function");
            return;
        }
        if (m_fold.keepsOnes)
            return;
        if (!m_fold.meanRemoved)
            refuse("layernorm_mean_not_removed", "writers",
                   "embeddings and writers still carry the mean the LayerNorms subtract");
        else if (!m_fold.normsBecomeRms)
            refuse("layernorm_mean_in_rotated_basis", "norms", "the LayerNorms would subtract the mean in the rotated basis");
    }

    bool isPostNorm() const
    {
        return (m_context.model && m_context.model->postNorm) || (m_context.family && m_context.family->postNorm);
    }

    bool subtractsMean() const
    {
        if (m_context.model && !m_context.model->normKind.empty())
            return m_context.model->normKind == "layernorm";
        return m_context.family && m_context.family->normKind == "layernorm";
    }

    void refuse(const std::string &rule, const std::string &other, const std::string &text)
    {
        m_faults.push_back({rule, other, m_stream.id.value + ": " + text + " (" + rule + ")", Refusal::Severity::Error});
    }

    const Stream &m_stream;
    const StreamFold &m_fold;
    const std::vector<OtherReader> &m_required;
    const PlacementContext &m_context;
    std::vector<Refusal> m_faults;
};

} // namespace

std::vector<Refusal> streamFaults(const Stream &stream, const StreamFold &fold, const std::vector<OtherReader> &required,
                                  const PlacementContext &context)
{
    return StreamCheck(stream, fold, required, context).run();
}

} // namespace planish
