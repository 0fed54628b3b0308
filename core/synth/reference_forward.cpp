#include "core/synth/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace planish {

namespace {

MatrixD times(const MatrixD &x, const MatrixD &w, const MatrixD &bias)
{
    MatrixD y(x.rows(), w.rows());
    for (std::size_t m = 0; m < x.rows(); ++m) {
        for (std::size_t n = 0; n < w.rows(); ++n) {
            double sum = bias.empty() ? 0.0 : bias(0, n);
            for (std::size_t k = 0; k < x.cols(); ++k)
                sum += x(m, k) * w(n, k);
            y(m, n) = sum;
        }
    }
    return y;
}

void addTo(MatrixD &into, const MatrixD &more)
{
    for (std::size_t i = 0; i < into.size(); ++i)
        into.values()[i] += more.values()[i];
}

double activate(double x, const std::string &kind)
{
    if (kind == "relu")
        return std::max(x, 0.0);
    if (kind == "silu")
        return x / (1.0 + std::exp(-x));
    if (kind == "gelu_tanh")
        return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
}

class Pass {
public:
    Pass(const SynthModel &model, const std::vector<std::int32_t> &ids, const std::vector<std::int32_t> &lengths)
        : m_model(model), m_shape(model.shape), m_ids(ids), m_lengths(lengths)
    {
    }

    ForwardResult run()
    {
        MatrixD h = embedded();
        if (!m_shape.embeddingNorm.empty())
            h = normed(h, m_shape.embeddingNorm);
        for (std::int64_t layer = 0; layer < m_model.config.numLayers; ++layer)
            block(h, layer);
        if (m_shape.finalNorm) {
            const std::string edge = "layers." + std::to_string(m_model.config.numLayers) + ".residual";
            keep(edge, h);
            h = normed(h, m_shape.finalNormName);
            keep("head", h);
            m_result.logits = times(h, m_model.weight("head"), {});
        } else {
            m_result.logits = h;
        }
        return std::move(m_result);
    }

private:
    std::string at(const std::string &pattern, std::int64_t layer) const { return layerName(pattern, layer); }
    std::string role(std::int64_t layer, const std::string &name) const { return "layers." + std::to_string(layer) + "." + name; }
    void keep(const std::string &edge, const MatrixD &x) { m_result.edges[edge] = {x, {}}; }

    MatrixD embedded() const
    {
        const MatrixD table = m_model.weight("embed");
        const MatrixD positions = m_shape.learnedPositions ? m_model.weight("embed_positions") : MatrixD();
        MatrixD h(m_ids.size(), table.cols());
        const double scale = m_shape.scaleEmbedding ? std::sqrt(double(table.cols())) : 1.0;
        std::size_t row = 0;
        for (std::int32_t length : m_lengths) {
            for (std::int32_t p = 0; p < length; ++p, ++row) {
                for (std::size_t k = 0; k < h.cols(); ++k) {
                    h(row, k) = scale * table(std::size_t(m_ids[row]), k);
                    if (!positions.empty())
                        h(row, k) += positions(std::size_t(p + m_shape.positionOffset), k);
                }
            }
        }
        return h;
    }

    MatrixD normed(const MatrixD &h, const std::string &dumpName) const
    {
        const MatrixD gain = m_model.weight(dumpName), bias = m_model.bias(dumpName);
        MatrixD out(h.rows(), h.cols());
        for (std::size_t m = 0; m < h.rows(); ++m)
            normRow(h.row(m), out.row(m), gain, bias);
        return out;
    }

    void normRow(std::span<const double> in, std::span<double> out, const MatrixD &gain, const MatrixD &bias) const
    {
        double mean = 0.0, square = 0.0;
        if (!m_shape.rmsNorm) {
            for (double x : in)
                mean += x;
            mean /= double(in.size());
        }
        for (double x : in)
            square += (x - mean) * (x - mean);
        const double scale = 1.0 / std::sqrt(square / double(in.size()) + m_model.config.normEps);
        for (std::size_t k = 0; k < in.size(); ++k) {
            out[k] = (in[k] - mean) * scale * (m_shape.normOffset + gain(0, k));
            if (!bias.empty())
                out[k] += bias(0, k);
        }
    }

    void block(MatrixD &h, std::int64_t layer)
    {
        if (!m_shape.postNorm)
            keep(role(layer, "residual"), h);
        const MatrixD attentionIn = m_shape.postNorm ? h : normed(h, at(m_shape.attentionNorm, layer));
        keep(role(layer, "attn_in"), attentionIn);
        const MatrixD attentionOut = attention(attentionIn, layer);
        if (m_shape.parallel) {
            const MatrixD mlpOut = mlp(attentionIn, layer);
            addTo(h, attentionOut);
            addTo(h, mlpOut);
            return;
        }
        addTo(h, attentionOut);
        if (m_shape.postNorm)
            h = normed(h, at(m_shape.attentionNorm, layer));
        const MatrixD mlpIn = m_shape.postNorm ? h : normed(h, at(m_shape.mlpNorm, layer));
        addTo(h, mlp(mlpIn, layer));
        if (m_shape.postNorm)
            h = normed(h, at(m_shape.mlpNorm, layer));
    }

    MatrixD linear(const MatrixD &x, std::int64_t layer, const std::string &name) const
    {
        return times(x, m_model.weight(role(layer, name)), m_model.bias(role(layer, name)));
    }

    MatrixD attention(const MatrixD &x, std::int64_t layer)
    {
        MatrixD q = linear(x, layer, m_shape.q), k = linear(x, layer, m_shape.k);
        const MatrixD v = linear(x, layer, m_shape.v);
        if (m_shape.qkNorm) {
            headNorm(q, role(layer, "q_norm"));
            headNorm(k, role(layer, "k_norm"));
        }
        MatrixD mixed(x.rows(), q.cols());
        std::size_t first = 0;
        for (std::int32_t length : m_lengths) {
            attendRequest(q, k, v, mixed, first, std::size_t(length));
            first += std::size_t(length);
        }
        keep(role(layer, "attn_out"), mixed);
        return linear(mixed, layer, m_shape.o);
    }

    void headNorm(MatrixD &x, const std::string &dumpName) const
    {
        const MatrixD gain = m_model.weight(dumpName);
        const std::size_t d = gain.cols();
        for (std::size_t m = 0; m < x.rows(); ++m) {
            for (std::size_t h = 0; h < x.cols() / d; ++h) {
                const std::span<double> head = x.row(m).subspan(h * d, d);
                normRow(std::vector<double>(head.begin(), head.end()), head, gain, {});
            }
        }
    }

    /// Rotates the pairs (i, i + d/2) of a head by position / theta^(2i/d).
    void rope(std::span<double> head, std::size_t position) const
    {
        const std::size_t half = head.size() / 2;
        for (std::size_t i = 0; i < half; ++i) {
            const double angle = double(position) * std::pow(m_model.config.ropeTheta, -2.0 * double(i) / double(head.size()));
            const double a = head[i], b = head[i + half];
            head[i] = a * std::cos(angle) - b * std::sin(angle);
            head[i + half] = b * std::cos(angle) + a * std::sin(angle);
        }
    }

    void attendRequest(MatrixD &q, MatrixD &k, const MatrixD &v, MatrixD &mixed, std::size_t first, std::size_t length) const
    {
        const std::size_t d = std::size_t(m_model.config.headDim), heads = q.cols() / d, groups = heads / (k.cols() / d);
        for (std::size_t t = 0; m_shape.rope && t < length; ++t) {
            for (std::size_t h = 0; h < heads; ++h)
                rope(q.row(first + t).subspan(h * d, d), t);
            for (std::size_t h = 0; h < k.cols() / d; ++h)
                rope(k.row(first + t).subspan(h * d, d), t);
        }
        for (std::size_t h = 0; h < heads; ++h) {
            const std::size_t kv = h / groups * d;
            for (std::size_t t = 0; t < length; ++t) {
                const std::size_t reach = m_shape.causal ? t + 1 : length;
                std::vector<double> p(reach);
                for (std::size_t s = 0; s < reach; ++s)
                    for (std::size_t i = 0; i < d; ++i)
                        p[s] += q(first + t, h * d + i) * k(first + s, kv + i) / std::sqrt(double(d));
                softmax(p);
                for (std::size_t s = 0; s < reach; ++s)
                    for (std::size_t i = 0; i < d; ++i)
                        mixed(first + t, h * d + i) += p[s] * v(first + s, kv + i);
            }
        }
    }

    static void softmax(std::vector<double> &p)
    {
        const double top = *std::max_element(p.begin(), p.end());
        double sum = 0.0;
        for (double &x : p)
            sum += x = std::exp(x - top);
        for (double &x : p)
            x /= sum;
    }

    MatrixD mlp(const MatrixD &x, std::int64_t layer)
    {
        keep(role(layer, "mlp_in"), x);
        if (m_shape.experts)
            return mixture(x, layer);
        MatrixD inner = linear(x, layer, m_shape.up);
        if (m_shape.gated)
            gateInto(inner, linear(x, layer, m_shape.gate));
        else
            for (double &value : inner.values())
                value = activate(value, m_shape.activation);
        keep(role(layer, "mlp_down"), inner);
        return linear(inner, layer, m_shape.down);
    }

    void gateInto(MatrixD &up, const MatrixD &gate) const
    {
        for (std::size_t i = 0; i < up.size(); ++i)
            up.values()[i] *= activate(gate.values()[i], m_shape.activation);
    }

    /// Top-2 routing with renormalised softmax weights, as Mixtral does.
    MatrixD mixture(const MatrixD &x, std::int64_t layer)
    {
        const MatrixD scores = linear(x, layer, "gate");
        MatrixD out(x.rows(), x.cols());
        for (std::int32_t e = 0; e < m_shape.experts; ++e) {
            std::vector<std::int32_t> rows;
            std::vector<double> shares;
            for (std::size_t m = 0; m < x.rows(); ++m) {
                if (const double share = routed(scores.row(m), e); share > 0) {
                    rows.push_back(std::int32_t(m));
                    shares.push_back(share);
                }
            }
            expert(x, layer, e, rows, shares, out);
        }
        return out;
    }

    static double routed(std::span<const double> scores, std::int32_t e)
    {
        int better = 0;
        double best = -1e300;
        for (std::size_t i = 0; i < scores.size(); ++i)
            better += scores[i] > scores[std::size_t(e)] || (scores[i] == scores[std::size_t(e)] && std::int32_t(i) < e);
        if (better >= 2)
            return 0.0;
        std::vector<double> sorted(scores.begin(), scores.end());
        std::sort(sorted.rbegin(), sorted.rend());
        best = sorted[0];
        return std::exp(scores[std::size_t(e)] - best) / (1.0 + std::exp(sorted[1] - best));
    }

    void expert(const MatrixD &x, std::int64_t layer, std::int32_t e, const std::vector<std::int32_t> &rows, const std::vector<double> &shares,
                MatrixD &out)
    {
        const std::string name = role(layer, "experts." + std::to_string(e));
        MatrixD mine(rows.size(), x.cols());
        for (std::size_t i = 0; i < rows.size(); ++i)
            std::copy_n(x.row(std::size_t(rows[i])).begin(), x.cols(), mine.row(i).begin());
        MatrixD inner = times(mine, m_model.weight(name + ".up_proj"), {});
        gateInto(inner, times(mine, m_model.weight(name + ".gate_proj"), {}));
        if (!rows.empty())
            m_result.edges[name + ".mlp_down"] = {inner, rows};
        const MatrixD y = times(inner, m_model.weight(name + ".down_proj"), {});
        for (std::size_t i = 0; i < rows.size(); ++i)
            for (std::size_t k = 0; k < out.cols(); ++k)
                out(std::size_t(rows[i]), k) += shares[i] * y(i, k);
    }

    const SynthModel &m_model;
    const SynthShape &m_shape;
    const std::vector<std::int32_t> &m_ids;
    const std::vector<std::int32_t> &m_lengths;
    ForwardResult m_result;
};

} // namespace

ForwardResult referenceForward(const SynthModel &model, const std::vector<std::int32_t> &ids, const std::vector<std::int32_t> &requestLengths)
{
    return Pass(model, ids, requestLengths).run();
}

} // namespace planish
