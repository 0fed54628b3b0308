// What OmniQuant learns on one edge, without its optimizer: the Rewrite of a state, and the slopes of the layer error through both
// quantizers. diagonal.md 9.1 and 9.2.
#pragma once

#include "core/methods/dense.h"
#include "core/methods/learned_clip.h"
#include "core/methods/method.h"

namespace planish {

struct OmniOptions {
    bool clip = true, scale = true, shift = false; ///< LWC, and the two halves of LET
    bool official = false;                         ///< truncation at .01, start from the weights of the first consumer only
    bool logScale = true;
    bool activationStep = false; ///< act_gradient=full: the step of X' is a function of X'
};

/// What is learned, or the slope of every such number. Tied channels share one entry.
struct OmniState {
    std::vector<double> scale, shift; ///< scale: log s, or s itself without logScale
    std::vector<ClipLogits> clips;    ///< per consumer, one pair per share
};

/// X, W and Y of the rows it is trained on. L = mean over rows and outputs of (Yhat - Y)^2,
/// Yhat = Q(X') Q(W')^T + W c, X' = (X - c)/s, W' = W s.
class OmniLayer {
public:
    /// `x` [rows, K]: the rows to train on. Keeps a reference to `input`.
    OmniLayer(const FitInput &input, const MatrixD &x, OmniOptions options);

    /// SmoothQuant factors, midpoints, logits at `init`; `dead` counts channels whose factor stays 1.
    OmniState start(std::int64_t &dead) const;
    Rewrite rewriteOf(const OmniState &state) const;
    /// s no smaller than the truncation of the released code, where it applies.
    void truncate(OmniState &state) const;

    /// dL/dstate over the rows [begin, begin + count). Errors: a step that cannot be represented; kernel failures.
    Expected<OmniState> slopes(const OmniState &state, std::size_t begin, std::size_t count) const;
    std::size_t rows() const { return static_cast<std::size_t>(m_x.rows()); }

private:
    /// s and c of every channel, and the rows of one step in the coordinates they make.
    struct Step {
        Eigen::VectorXd s, c;
        Dense x, quantized, toX;
        Eigen::Index begin = 0;
    };

    std::size_t channels() const { return m_input.edge->channels; }
    std::size_t setOf(std::size_t k) const { return m_input.ties.set.empty() ? k : std::size_t(m_input.ties.set[k]); }
    std::size_t setCount() const { return m_input.ties.set.empty() ? channels() : m_input.ties.count; }
    double scaleAt(const OmniState &state, std::size_t k) const;
    OmniState zeros(const OmniState &like) const;
    Expected<Step> stepAt(const OmniState &state, std::size_t begin, std::size_t count) const;
    Expected<void> throughConsumer(std::size_t i, const OmniState &state, Step &step, OmniState &slopes) const;
    Expected<void> throughActivations(Step &step) const;

    const FitInput &m_input;
    OmniOptions m_options;
    Dense m_x;
    std::vector<Dense> m_w, m_y;
    double m_outputs = 0;
    bool m_quantizesX = false;
};

} // namespace planish
