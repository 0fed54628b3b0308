#include "core/synth/synth_dump.h"

#include <algorithm>
#include <cmath>

#include "core/io/dump_writer.h"
#include "core/transform/random_stream.h"

namespace planish {

namespace {

constexpr std::int64_t kBlockRows = 512;
constexpr double kSigma = 0.5;       // of ordinary values: median |x| about .34
constexpr double kPersistent = 9.0;  // above the 6.0 of LLM.int8 in every row
constexpr double kValue = 45.0;      // max/median about 130, below the 50 of the super-weight rule
constexpr double kMassive = 600.0;   // above 100 and 1000 x the median
constexpr double kSuperInput = 60.0, kSuperWeight = 4.0; // both curves of the super-weight rule above 50

struct Layout {
    std::int64_t tokens, channels, layers;
    std::vector<std::int64_t> requestStart;
    std::int64_t persistent, dead, massive, super, superOutput, valueChannel, valueRow;
};

Layout layoutOf(const SynthDumpRequest &request)
{
    Layout l{request.tokens, request.channels, request.layers, {}, 0, 0, 0, 0, 0, 0, 0};
    const std::int64_t requests = std::clamp<std::int64_t>(l.tokens / 64, 3, 64);
    for (std::int64_t r = 0; r < requests; ++r)
        l.requestStart.push_back(r * l.tokens / requests);
    RandomStream stream(request.seed, "synth", "places");
    std::vector<std::int64_t> channels(std::size_t(l.channels));
    for (std::size_t i = 0; i < channels.size(); ++i)
        channels[i] = std::int64_t(i);
    stream.shuffle(channels);
    l.persistent = channels[0], l.dead = channels[1], l.massive = channels[2], l.super = channels[3], l.superOutput = channels[4], l.valueChannel = channels[5];
    l.valueRow = std::int64_t(stream.below(std::uint64_t(l.tokens)));
    return l;
}

TokenTable tokenTable(const Layout &layout)
{
    TokenTable tokens;
    tokens.hasRequest = tokens.hasPosition = tokens.hasPhase = tokens.hasId = true;
    std::size_t request = 0;
    for (std::int64_t t = 0; t < layout.tokens; ++t) {
        while (request + 1 < layout.requestStart.size() && layout.requestStart[request + 1] <= t)
            ++request;
        tokens.request.push_back(std::int32_t(request));
        tokens.position.push_back(std::int32_t(t - layout.requestStart[request]));
        tokens.id.push_back(std::int32_t(t % 50000));
        tokens.phase.push_back(0);
        tokens.mask.push_back(1);
    }
    return tokens;
}

ModelInfo modelInfo(const Layout &layout)
{
    ModelInfo m;
    m.model = "synth";
    m.createdBy = "planish synth";
    m.family = "llama";
    m.hiddenSize = m.ffnSize = layout.channels;
    m.numLayers = layout.layers;
    const bool heads = layout.channels % 64 == 0;
    m.headDim = heads ? 64 : layout.channels;
    m.numHeads = m.numKvHeads = layout.channels / m.headDim;
    m.normKind = "rmsnorm";
    m.activation = "silu";
    m.normEps = 1e-5;
    return m;
}

std::string edgeName(std::int64_t layer, const char *site) { return "layers." + std::to_string(layer) + "." + site; }

class Writer {
public:
    Writer(DumpWriter &writer, const SynthDumpRequest &request, std::stop_token stop, const ProgressSink &progress)
        : m_writer(writer), m_layout(layoutOf(request)), m_seed(request.seed), m_stop(stop), m_progress(progress)
    {
    }

    Expected<std::vector<Planted>> run()
    {
        for (std::int64_t layer = 0; layer < m_layout.layers; ++layer) {
            for (const char *site : {"attn_in", "mlp_down", "residual"}) {
                if (auto done = edge(layer, site); !done)
                    return tl::make_unexpected(done.error());
            }
            if (auto done = weights(layer); !done)
                return tl::make_unexpected(done.error());
        }
        if (auto done = truth(); !done)
            return tl::make_unexpected(done.error());
        return m_planted;
    }

private:
    Expected<void> edge(std::int64_t layer, const std::string &site)
    {
        DumpEdge spec;
        spec.id = {edgeName(layer, site.c_str())};
        spec.layer = layer;
        spec.site = site;
        spec.rows = std::uint64_t(m_layout.tokens);
        spec.channels = std::uint64_t(m_layout.channels);
        if (site == "attn_in") {
            spec.producer = edgeName(layer, "input_layernorm");
            spec.consumers = {edgeName(layer, "q_proj"), edgeName(layer, "k_proj"), edgeName(layer, "v_proj")};
        } else if (site == "mlp_down") {
            spec.consumers = {edgeName(layer, "down_proj")};
        } else {
            spec.producer = "stream:residual";
        }
        if (auto added = m_writer.addEdge(spec, {.type = StoredType::F16}); !added)
            return added;
        RandomStream stream(m_seed, "synth", spec.id.value);
        for (std::int64_t begin = 0; begin < m_layout.tokens; begin += kBlockRows) {
            if (m_stop.stop_requested())
                return cancelled("synth");
            const std::int64_t rows = std::min(kBlockRows, m_layout.tokens - begin);
            MatrixF block(std::size_t(rows), std::size_t(m_layout.channels));
            for (float &value : block.values())
                value = float(kSigma * stream.normal());
            plant(layer, site, begin, block);
            if (auto written = m_writer.appendRows(spec.id, ConstViewF(block.view())); !written)
                return written;
            if (m_progress)
                m_progress({.stage = spec.id.value, .done = double(begin + rows), .total = double(m_layout.tokens), .unit = "rows"});
        }
        note(layer, site, spec.id.value);
        return {};
    }

    void set(MatrixF &block, std::int64_t begin, std::int64_t row, std::int64_t channel, double value)
    {
        if (row >= begin && row < begin + std::int64_t(block.rows()))
            block(std::size_t(row - begin), std::size_t(channel)) = float(value);
    }

    void plant(std::int64_t layer, const std::string &site, std::int64_t begin, MatrixF &block)
    {
        if (site == "attn_in") {
            for (std::size_t r = 0; r < block.rows(); ++r) {
                block(r, std::size_t(m_layout.persistent)) += float(kPersistent);
                block(r, std::size_t(m_layout.dead)) = 0.0F;
            }
        } else if (site == "mlp_down") {
            const bool super = layer == 0;
            set(block, begin, m_layout.valueRow, super ? m_layout.super : m_layout.valueChannel, super ? kSuperInput : kValue);
        } else {
            for (std::int64_t start : m_layout.requestStart)
                set(block, begin, start, m_layout.massive, kMassive);
        }
    }

    void note(std::int64_t layer, const std::string &site, const std::string &edge)
    {
        if (site == "attn_in") {
            m_planted.push_back({"persistent_channel", edge, -1, m_layout.persistent, kPersistent});
            m_planted.push_back({"dead_channel", edge, -1, m_layout.dead, 0.0});
        } else if (site == "mlp_down") {
            const bool super = layer == 0;
            const std::int64_t channel = super ? m_layout.super : m_layout.valueChannel;
            m_planted.push_back({"value_outlier", edge, m_layout.valueRow, channel, super ? kSuperInput : kValue});
            if (super)
                m_planted.push_back({"super_weight_candidate", edge, m_layout.superOutput, m_layout.super, kSuperWeight});
        } else {
            m_planted.push_back({"value_outlier", edge, m_layout.requestStart.front(), m_layout.massive, kMassive});
            for (std::int64_t start : m_layout.requestStart)
                m_planted.push_back({"massive_activation", edge, start, m_layout.massive, kMassive});
        }
    }

    Expected<void> weights(std::int64_t layer)
    {
        const std::size_t k = std::size_t(m_layout.channels);
        for (const char *role : {"q_proj", "k_proj", "v_proj", "down_proj"}) {
            if (m_stop.stop_requested())
                return cancelled("synth");
            RandomStream stream(m_seed, "synth", edgeName(layer, role));
            MatrixD w(k, k);
            for (double &value : w.values())
                value = stream.normal() / std::sqrt(double(k));
            if (layer == 0 && std::string(role) == "down_proj")
                w(std::size_t(m_layout.superOutput), std::size_t(m_layout.super)) = kSuperWeight;
            if (auto added = m_writer.addWeight({edgeName(layer, role)}, ConstViewD(w.view()), {.type = StoredType::F16}); !added)
                return added;
        }
        const NormParameters norm{"rmsnorm", 0, 1e-5, std::vector<double>(k, 1.0), {}};
        return m_writer.addNorm({edgeName(layer, "input_layernorm")}, norm, StoredType::F16);
    }

    Expected<void> truth()
    {
        std::vector<std::string> kinds, edges;
        std::vector<double> rows, channels, values;
        for (const Planted &each : m_planted) {
            kinds.push_back(each.kind);
            edges.push_back(each.edge);
            rows.push_back(double(each.row));
            channels.push_back(double(each.channel));
            values.push_back(each.value);
        }
        if (auto done = m_writer.addTexts("/planted/kind", kinds); !done)
            return done;
        if (auto done = m_writer.addTexts("/planted/edge", edges); !done)
            return done;
        const std::vector<std::uint64_t> shape{std::uint64_t(rows.size())};
        if (auto done = m_writer.addArray("/planted/row", rows, shape, StoredType::I64); !done)
            return done;
        if (auto done = m_writer.addArray("/planted/channel", channels, shape, StoredType::I64); !done)
            return done;
        return m_writer.addArray("/planted/value", values, shape, StoredType::F64);
    }

    DumpWriter &m_writer;
    Layout m_layout;
    std::uint64_t m_seed;
    std::stop_token m_stop;
    const ProgressSink &m_progress;
    std::vector<Planted> m_planted;
};

} // namespace

Expected<std::vector<Planted>> writeSynthDump(const SynthDumpRequest &request, std::stop_token stop, const ProgressSink &progress)
{
    if (request.tokens < 3 || request.channels < 8 || request.layers < 1)
        return usageError("synth", std::to_string(request.tokens) + " tokens x " + std::to_string(request.channels) + " channels x " +
                                       std::to_string(request.layers) + " layers is too small",
                          "at least 3 tokens, 8 channels and 1 layer");
    const Layout layout = layoutOf(request);
    auto writer = DumpWriter::create(request.out, {.model = modelInfo(layout), .tokens = tokenTable(layout), .root = {}});
    if (!writer)
        return tl::make_unexpected(writer.error());
    auto planted = Writer(*writer, request, stop, progress).run();
    if (!planted)
        return planted;
    if (auto finished = writer->finish(); !finished)
        return tl::make_unexpected(finished.error());
    return planted;
}

} // namespace planish
