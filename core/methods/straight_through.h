// Quantizers for learning: rounding forward, its slope taken as 1 backward, and learned factors on the ends of every range. rotation.md
// 5.3 and 6.6, diagonal.md 9.1. Two-sided: the layer error of an edge under both specs.
#pragma once

#include <vector>

#include "core/methods/dense.h"
#include "core/methods/method.h"

namespace planish::learned {

double sigmoid(double x);

/// sigmoid(logit) multiplies the lower and the upper end of a share's range. One pair for all shares, one per share, or empty: no clip.
struct ClipLogits {
    std::vector<double> low, high;
    bool isEmpty() const { return high.empty(); }
};

/// A matrix through its quantizer, with what the way back needs.
struct Rounded {
    Dense values;              ///< x-hat
    std::vector<double> steps; ///< of each share; empty for formats without a linear step
    FixedRanges whole;         ///< of each share before the clip; empty without a clip
};

class StraightThrough {
public:
    /// `spec` as it will be used; static ranges are taken from the rows at hand while learning.
    StraightThrough(const FitInput &input, const QuantSpec &spec);

    /// Learned ranges need an integer grid whose shares are rows, groups or the tensor.
    bool canClip() const;
    /// x [rows, K]. Errors: kernel failures.
    Expected<Rounded> forward(const Dense &x, const ClipLogits &clip = {}) const;
    /// `slope` to x-hat becomes the slope to x: 0 where the code saturates, and the step follows the ends of its share. Slopes of the logits are added to `clipSlope`.
    void backward(const Dense &x, const Rounded &rounded, const ClipLogits &clip, Dense &slope, ClipLogits *clipSlope) const;

private:
    void addClipSlopes(const std::vector<double> &toStep, const FixedRanges &whole, const ClipLogits &clip, ClipLogits &slope) const;

    void addStepSlopes(const Dense &x, const Rounded &rounded, const ClipLogits &clip, const std::vector<double> &toStep, Dense &slope) const;

    const FitInput *m_input;
    NumberGrid m_grid;
};

/// Logits of the activation range and of the shares of all consumers, in their order.
struct LearnedClips {
    ClipLogits activation, weights;
};

struct LayerSlopes {
    double value = 0;       ///< ||E||^2 / (M N)
    Dense toX, toW;         ///< [M, K] and [sum N, K]: slopes to X' and to the stacked W'
    LearnedClips clips;
    Eigen::VectorXd toBias; ///< [sum N]: slope to a constant added to each output
};

/// E = Xhat W'hat^T - Y of one edge, consumers stacked, and the slopes of its mean square.
class LayerError {
public:
    explicit LayerError(const FitInput &input);
    /// X' [M, K], stacked W' [sum N, K], Y [M, sum N]; with a bias [sum N] also E + bias.
    Expected<LayerSlopes> operator()(const Dense &x, const Dense &w, const Dense &y, const LearnedClips &clips = {},
                                     const Eigen::VectorXd *bias = nullptr) const;
    const StraightThrough &activation() const { return m_activation; }
    const StraightThrough &weights() const { return m_weights; }
    /// Logits `start` for every share of the consumers, and one pair for activations; empty where a range cannot be learned.
    LearnedClips startClips(bool activation, bool weights, double start) const;
    /// The clips a Rewrite carries.
    std::vector<Clip> clipsOf(const LearnedClips &clips) const;

private:
    std::vector<std::pair<std::size_t, std::size_t>> parts() const; ///< rows of W quantized together: {first, count}

    const FitInput *m_input;
    StraightThrough m_activation, m_weights;
    std::vector<std::size_t> m_outputs;
};

} // namespace planish::learned
