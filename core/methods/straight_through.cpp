#include "core/methods/straight_through.h"

#include <algorithm>
#include <cmath>

#include "core/methods/kernel_result.h"
#include "core/methods/share_ranges.h"

namespace planish::learned {
namespace {

ConstViewD viewOf(const Dense &m)
{
    const auto cols = std::size_t(m.cols());
    return {m.data(), std::size_t(m.rows()), cols, cols};
}

std::size_t logitOf(const ClipLogits &clip, std::size_t share)
{
    return clip.high.size() == 1 ? 0 : share;
}

NumberGrid dynamicGrid(const QuantSpec &spec)
{
    NumberGrid grid = spec.grid;
    grid.timing = Timing::Dynamic;
    return grid;
}

/// Copies rows [first, first + part.rows()) of `whole`.
Dense rowsOf(const Dense &whole, std::size_t first, std::size_t count)
{
    return whole.middleRows(Eigen::Index(first), Eigen::Index(count));
}

void append(std::vector<double> &all, const std::vector<double> &more)
{
    all.insert(all.end(), more.begin(), more.end());
}

ClipLogits slice(const ClipLogits &all, std::size_t first, std::size_t count)
{
    if (all.isEmpty())
        return {};
    const auto from = std::ptrdiff_t(first), to = std::ptrdiff_t(first + count);
    return {{all.low.begin() + from, all.low.begin() + to}, {all.high.begin() + from, all.high.begin() + to}};
}

} // namespace

double sigmoid(double x)
{
    return 1.0 / (1.0 + std::exp(-x));
}

StraightThrough::StraightThrough(const FitInput &input, const QuantSpec &spec) : m_input(&input), m_grid(dynamicGrid(spec)) {}

bool StraightThrough::canClip() const
{
    return isInteger(m_grid.format) && m_grid.sharing != Sharing::Channel;
}

Expected<Rounded> StraightThrough::forward(const Dense &x, const ClipLogits &clip) const
{
    Rounded rounded;
    if (m_grid.format == NumberFormat::None) {
        rounded.values = x;
        return rounded;
    }
    NumberGrid grid = m_grid;
    FixedRanges ranges;
    if (!clip.isEmpty()) {
        rounded.whole = shareRanges(grid, viewOf(x));
        for (std::size_t j = 0; j < rounded.whole.size(); ++j) {
            const std::size_t at = logitOf(clip, j);
            ranges.push_back({rounded.whole[j].lo * sigmoid(clip.low[at]), rounded.whole[j].hi * sigmoid(clip.high[at])});
        }
        grid.clip = ClipRule{};
    }
    const std::string &subject = m_input->edge->id.value;
    auto resident = fromKernel(m_input->backend->upload(viewOf(x)), subject);
    if (!resident)
        return tl::make_unexpected(resident.error());
    auto quantized = fromKernel(m_input->backend->quantize(**resident, {.grid = grid, .ranges = ranges.empty() ? nullptr : &ranges}), subject);
    if (!quantized)
        return tl::make_unexpected(quantized.error());
    auto values = fromKernel(m_input->backend->download(*quantized->reconstructed), subject);
    if (!values)
        return tl::make_unexpected(values.error());
    rounded.values = eigenMatrix(*values);
    if (isInteger(grid.format))
        rounded.steps = std::move(quantized->steps);
    return rounded;
}

void StraightThrough::backward(const Dense &x, const Rounded &rounded, const ClipLogits &clip, Dense &slope, ClipLogits *clipSlope) const
{
    if (rounded.steps.empty() || m_grid.sharing == Sharing::Channel)
        return;
    const std::size_t rows = std::size_t(x.rows()), cols = std::size_t(x.cols()), perRow = sharesPerRow(m_grid, cols);
    const std::size_t width = perRow > 1 ? m_grid.group : cols;
    std::vector<double> toStep(rounded.steps.size(), 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
        const double *value = x.data() + r * cols, *hat = rounded.values.data() + r * cols;
        double *down = slope.data() + r * cols;
        for (std::size_t begin = 0; begin < cols; begin += width) {
            const std::size_t share = rounded.steps.size() == 1 ? 0 : r * perRow + begin / width;
            const double step = rounded.steps[share], limit = 0.5 * step * (1 + 1e-9);
            double sum = 0;
            for (std::size_t k = begin; k < std::min(begin + width, cols); ++k) {
                const double e = hat[k] - value[k];
                const bool saturated = std::abs(e) > limit;
                sum += down[k] * (saturated ? hat[k] : e);
                if (saturated)
                    down[k] = 0;
            }
            toStep[share] += sum / step;
        }
    }
    addStepSlopes(x, rounded, clip, toStep, slope);
    if (clipSlope && !clip.isEmpty())
        addClipSlopes(toStep, rounded.whole, clip, *clipSlope);
}

/// The step is a function of x too: of the first element that holds the end of its share.
void StraightThrough::addStepSlopes(const Dense &x, const Rounded &rounded, const ClipLogits &clip, const std::vector<double> &toStep, Dense &slope) const
{
    const std::size_t cols = std::size_t(x.cols()), perRow = sharesPerRow(m_grid, cols), width = perRow > 1 ? m_grid.group : cols;
    for (std::size_t j = 0; rounded.steps.size() > 1 && j < rounded.steps.size(); ++j) {
        const std::size_t row = j / perRow, begin = (j % perRow) * width, end = std::min(begin + width, cols);
        const double *first = x.data() + row * cols;
        const auto [low, high] = std::minmax_element(first + begin, first + end);
        const std::size_t at = clip.isEmpty() ? 0 : logitOf(clip, j);
        const double g = clip.isEmpty() ? 1.0 : sigmoid(clip.high[at]), b = clip.isEmpty() ? 1.0 : sigmoid(clip.low[at]);
        double *down = slope.data() + row * cols;
        const double top = *high * g, bottom = *low * b;
        if (isAsymmetric(m_grid.dialect)) {
            if (!(top > bottom))
                continue;
            down[high - first] += toStep[j] * rounded.steps[j] / (top - bottom) * g;
            down[low - first] -= toStep[j] * rounded.steps[j] / (top - bottom) * b;
        } else if (std::abs(top) >= std::abs(bottom)) {
            down[high - first] += top == 0.0 ? 0.0 : toStep[j] * rounded.steps[j] / top * g;
        } else {
            down[low - first] += toStep[j] * rounded.steps[j] / bottom * b;
        }
    }
}

/// d step / d factor: the end of the range over the number of steps; a symmetric step hangs on the larger end only.
void StraightThrough::addClipSlopes(const std::vector<double> &toStep, const FixedRanges &whole, const ClipLogits &clip, ClipLogits &slope) const
{
    const bool asymmetric = isAsymmetric(m_grid.dialect);
    const int bits = bitsOf(m_grid.format);
    double range = asymmetric ? std::exp2(bits) - 1 : std::exp2(bits - 1) - 1;
    if (m_grid.dialect == Dialect::Half)
        range += 0.5;
    for (std::size_t j = 0; j < toStep.size(); ++j) {
        const std::size_t at = logitOf(clip, j);
        const double g = sigmoid(clip.high[at]), b = sigmoid(clip.low[at]), hi = whole[j].hi, lo = whole[j].lo;
        if (asymmetric) {
            slope.high[at] += toStep[j] * hi / range * g * (1 - g);
            slope.low[at] -= toStep[j] * lo / range * b * (1 - b);
        } else if (std::abs(hi * g) >= std::abs(lo * b)) {
            slope.high[at] += toStep[j] * std::abs(hi) / range * g * (1 - g);
        } else {
            slope.low[at] += toStep[j] * std::abs(lo) / range * b * (1 - b);
        }
    }
}

LayerError::LayerError(const FitInput &input) : m_input(&input), m_activation(input, input.specs.act), m_weights(input, input.specs.weight)
{
    for (const ConsumerWeights &consumer : input.consumers)
        m_outputs.push_back(consumer.weight->rows());
}

/// One tensor scale or one channel scale belongs to one consumer; NVFP4 consumers share theirs, rows and groups do not care.
std::vector<std::pair<std::size_t, std::size_t>> LayerError::parts() const
{
    const Sharing sharing = m_input->specs.weight.grid.sharing;
    const bool separate = sharing == Sharing::Tensor || sharing == Sharing::Channel;
    std::vector<std::pair<std::size_t, std::size_t>> all{{0, 0}};
    for (const std::size_t outputs : m_outputs) {
        if (separate && all.back().second > 0)
            all.push_back({all.back().first + all.back().second, 0});
        all.back().second += outputs;
    }
    return all;
}

Expected<LayerSlopes> LayerError::operator()(const Dense &x, const Dense &w, const Dense &y, const LearnedClips &clips, const Eigen::VectorXd *bias) const
{
    auto xHat = m_activation.forward(x, clips.activation);
    if (!xHat)
        return tl::make_unexpected(xHat.error());
    struct Part {
        std::size_t first, count, share, shares;
        Dense source;
        Rounded rounded;
    };
    std::vector<Part> rounded;
    Dense wHat(w.rows(), w.cols());
    std::size_t share = 0;
    for (const auto &[first, count] : parts()) {
        const std::size_t shares = shareCount(m_input->specs.weight.grid, count, std::size_t(w.cols()));
        Part part{first, count, share, shares, rowsOf(w, first, count), {}};
        auto result = m_weights.forward(part.source, slice(clips.weights, share, shares));
        if (!result)
            return tl::make_unexpected(result.error());
        wHat.middleRows(Eigen::Index(first), Eigen::Index(count)) = result->values;
        part.rounded = std::move(*result);
        rounded.push_back(std::move(part));
        share += shares;
    }
    Dense error = xHat->values * wHat.transpose() - y;
    if (bias)
        error.rowwise() += bias->transpose();
    LayerSlopes slopes;
    const double scale = 1.0 / double(error.size());
    slopes.value = error.squaredNorm() * scale;
    slopes.toX = 2 * scale * (error * wHat);
    slopes.toW = 2 * scale * (error.transpose() * xHat->values);
    slopes.toBias = 2 * scale * error.colwise().sum().transpose();
    slopes.clips.activation = {std::vector<double>(clips.activation.low.size()), std::vector<double>(clips.activation.high.size())};
    m_activation.backward(x, *xHat, clips.activation, slopes.toX, &slopes.clips.activation);
    for (const Part &part : rounded) {
        Dense toPart = rowsOf(slopes.toW, part.first, part.count);
        ClipLogits clip = slice(clips.weights, part.share, part.shares), slope{std::vector<double>(clip.low.size()), std::vector<double>(clip.high.size())};
        m_weights.backward(part.source, part.rounded, clip, toPart, &slope);
        slopes.toW.middleRows(Eigen::Index(part.first), Eigen::Index(part.count)) = toPart;
        append(slopes.clips.weights.low, slope.low);
        append(slopes.clips.weights.high, slope.high);
    }
    return slopes;
}

LearnedClips LayerError::startClips(bool activation, bool weights, double start) const
{
    LearnedClips clips;
    if (activation && m_activation.canClip())
        clips.activation = {{start}, {start}};
    std::size_t shares = 0;
    for (const std::size_t outputs : m_outputs)
        shares += shareCount(m_input->specs.weight.grid, outputs, m_input->edge->channels);
    if (weights && m_weights.canClip())
        clips.weights = {std::vector<double>(shares, start), std::vector<double>(shares, start)};
    return clips;
}

std::vector<Clip> LayerError::clipsOf(const LearnedClips &clips) const
{
    std::vector<Clip> all;
    const auto add = [&](Target target, std::size_t consumer, const ClipLogits &logits) {
        Clip clip{.target = target, .kind = Clip::Kind::Multiplier, .lo = {}, .hi = {}, .consumer = consumer};
        for (std::size_t j = 0; j < logits.high.size(); ++j) {
            clip.lo.push_back(sigmoid(logits.low[j]));
            clip.hi.push_back(sigmoid(logits.high[j]));
        }
        all.push_back(std::move(clip));
    };
    if (!clips.activation.isEmpty())
        add(Target::Activation, 0, clips.activation);
    std::size_t first = 0;
    for (std::size_t i = 0; !clips.weights.isEmpty() && i < m_outputs.size(); ++i) {
        const std::size_t shares = shareCount(m_input->specs.weight.grid, m_outputs[i], m_input->edge->channels);
        add(Target::Weight, i, slice(clips.weights, first, shares));
        first += shares;
    }
    return all;
}

} // namespace planish::learned
