#include "kernels/share_grid.h"

#include "kernels/share_coders.h"

#include <algorithm>
#include <limits>

namespace planish {

namespace {

constexpr double kNvSmallestScale = 0.001953125; // 2^-9, smallest E4M3
constexpr double kNvLargestScale = 448.0;
constexpr double kNvFourOverSixLimit = 256.0; // so that 1.5 S still fits in E4M3 (formats.md 4.4)
constexpr int kMseCandidates = 80;            // f = 1 - i/100 (cli.md, clip=mse)

bool isNormal(double v)
{
    return std::isfinite(v) && std::fabs(v) >= std::numeric_limits<double>::min();
}

double storedStep(double step, StepType type)
{
    switch (type) {
    case StepType::F64:
        return step;
    case StepType::F32:
        return static_cast<double>(static_cast<float>(step));
    case StepType::F16:
        return roundToHalf(step);
    case StepType::Bf16:
        return roundToBfloat16(step);
    }
    return step;
}

bool usesAsymmetric(const NumberGrid &grid)
{
    return isInteger(grid.format) && isAsymmetric(grid.dialect);
}

double largestOf(Range range)
{
    return std::max(std::fabs(range.lo), std::fabs(range.hi));
}

double symmetricStep(const NumberGrid &grid, Range range)
{
    const double largest = largestOf(range);
    if (const FloatFormat *format = elementFormat(grid.format)) {
        return largest / format->maxFinite;
    }
    const int bits = bitsOf(grid.format);
    const double q = (1 << (bits - 1)) - 1;
    switch (grid.dialect) {
    case Dialect::Half:
        return largest / (((1 << bits) - 1) / 2.0);
    case Dialect::Signed:
        return (range.hi > -range.lo ? -largest : largest) / (q + 1.0);
    default:
        return largest / q;
    }
}

double zeroPoint(const NumberGrid &grid, double lo, double step)
{
    const double levels = (1 << bitsOf(grid.format)) - 1;
    const double zero = std::nearbyint(-lo / step);
    return grid.dialect == Dialect::Free ? zero : std::clamp(zero, 0.0, levels);
}

Range percentileRange(const NumberGrid &grid, std::span<const double> values, Range range)
{
    std::vector<double> sorted(values.begin(), values.end());
    if (usesAsymmetric(grid)) {
        Range clipped{linearQuantile(sorted, 1.0 - grid.clip.value), linearQuantile(sorted, grid.clip.value)};
        if (grid.dialect == Dialect::Zero) {
            clipped = {std::min(clipped.lo, 0.0), std::max(clipped.hi, 0.0)};
        }
        return clipped.hi > clipped.lo ? clipped : range;
    }
    std::ranges::transform(sorted, sorted.begin(), [](double v) { return std::fabs(v); });
    const double bound = linearQuantile(sorted, grid.clip.value);
    if (bound <= 0.0) {
        return range;
    }
    // Only the side of the extreme keeps its sign: dialect signed needs it, the others take the larger magnitude.
    return range.hi > -range.lo ? Range{0.0, bound} : Range{-bound, 0.0};
}

Range smallestErrorRange(const NumberGrid &grid, std::span<const double> values, Range range)
{
    const CodeGrid codes = codeGridOf(grid);
    double best = std::numeric_limits<double>::infinity();
    Range chosen = range;
    for (int i = 0; i < kMseCandidates; ++i) {
        const double factor = 1.0 - i / 100.0;
        const Range candidate{range.lo * factor, range.hi * factor};
        const ShareStep step = stepOfRange(grid, candidate);
        if (!step.representable) {
            continue;
        }
        const double error = squaredErrorOf(codes, step, values);
        if (error < best) {
            best = error;
            chosen = candidate;
        }
    }
    return chosen;
}

} // namespace

CodeGrid codeGridOf(const NumberGrid &grid)
{
    CodeGrid codes;
    codes.format = elementFormat(grid.format);
    if (grid.format == NumberFormat::MxInt8) {
        codes.lowest = -127.0;
        codes.highest = 127.0;
        return codes;
    }
    if (!isInteger(grid.format)) {
        return codes;
    }
    const int bits = bitsOf(grid.format);
    const double q = (1 << (bits - 1)) - 1;
    if (isAsymmetric(grid.dialect)) {
        codes.lowest = 0.0;
        codes.highest = (1 << bits) - 1;
    } else {
        codes.lowest = grid.dialect == Dialect::Narrow || grid.dialect == Dialect::Offset ? -q : -q - 1.0;
        codes.highest = grid.dialect == Dialect::Offset ? q + 1.0 : q;
    }
    codes.roundsSum = grid.tool == ToolDialect::CompressedTensors && isAsymmetric(grid.dialect);
    codes.castsInput = grid.tool == ToolDialect::BitsAndBytes;
    return codes;
}

Range rangeOf(std::span<const double> values)
{
    if (values.empty()) {
        return {};
    }
    constexpr std::size_t kLanes = 8;
    double lo[kLanes], hi[kLanes];
    std::fill_n(lo, kLanes, values[0]);
    std::fill_n(hi, kLanes, values[0]);
    std::size_t i = 0;
    for (; i + kLanes <= values.size(); i += kLanes) {
        for (std::size_t j = 0; j < kLanes; ++j) {
            const double v = values[i + j];
            lo[j] = v < lo[j] ? v : lo[j];
            hi[j] = v > hi[j] ? v : hi[j];
        }
    }
    for (; i < values.size(); ++i) {
        lo[0] = std::min(lo[0], values[i]);
        hi[0] = std::max(hi[0], values[i]);
    }
    return {*std::min_element(lo, lo + kLanes), *std::max_element(hi, hi + kLanes)};
}

double linearQuantile(std::vector<double> &values, double p)
{
    if (values.empty()) {
        return 0.0;
    }
    const double place = static_cast<double>(values.size() - 1) * p;
    const auto below = static_cast<std::size_t>(std::floor(place));
    const double fraction = place - static_cast<double>(below);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(below), values.end());
    const double a = values[below];
    if (below + 1 >= values.size()) {
        return a;
    }
    const double b = *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(below) + 1, values.end());
    // NumPy's lerp changes sides at one half; the last bit decides codes at ties.
    return fraction >= 0.5 ? b - (b - a) * (1.0 - fraction) : a + (b - a) * fraction;
}

Range clippedRange(const NumberGrid &grid, std::span<const double> values, Range range)
{
    if (usesAsymmetric(grid) && grid.dialect == Dialect::Zero) {
        range = {std::min(range.lo, 0.0), std::max(range.hi, 0.0)};
    }
    if (values.empty() || (range.lo == 0.0 && range.hi == 0.0)) {
        return range;
    }
    switch (grid.clip.kind) {
    case ClipKind::Max:
        return range;
    case ClipKind::Fixed:
        return {range.lo * grid.clip.value, range.hi * grid.clip.value};
    case ClipKind::Percentile:
        return percentileRange(grid, values, range);
    case ClipKind::Mse:
        return smallestErrorRange(grid, values, range);
    }
    return range;
}

ShareStep stepOfRange(const NumberGrid &grid, Range range)
{
    ShareStep share;
    const bool asymmetric = usesAsymmetric(grid);
    if (asymmetric && grid.dialect == Dialect::Zero) {
        range = {std::min(range.lo, 0.0), std::max(range.hi, 0.0)};
    }
    const double levels = (1 << bitsOf(grid.format)) - 1;
    const double step = asymmetric ? (range.hi - range.lo) / levels : symmetricStep(grid, range);
    if (step == 0.0 && (asymmetric ? range.hi == range.lo : largestOf(range) == 0.0)) {
        share.degenerate = true;
        share.zero = asymmetric ? zeroPoint(grid, range.lo, 1.0) : 0.0;
        return share;
    }
    share.step = storedStep(step, grid.stepType);
    share.scale = share.step;
    share.representable = isNormal(step) && std::isfinite(share.step) && share.step != 0.0;
    if (!share.representable) {
        return share;
    }
    if (asymmetric) {
        share.zero = zeroPoint(grid, range.lo, step); // from the step before it is stored, as the goldens do
        const double exact = -range.lo / share.step;
        share.zeroAtTie = std::fabs(exact - std::floor(exact) - 0.5) <= 1e-6 * std::max(1.0, std::fabs(exact));
    }
    if (grid.tool == ToolDialect::BitsAndBytes && isInteger(grid.format)) {
        share.multiplier = ((1 << (bitsOf(grid.format) - 1)) - 1) / largestOf(range);
    }
    return share;
}

ShareStep stepOfMxBlock(const NumberGrid &grid, double maxAbs)
{
    ShareStep share;
    const FloatFormat *format = elementFormat(grid.format);
    const double unit = format ? 1.0 : 1.0 / 64.0;
    share.step = unit;
    if (maxAbs == 0.0) {
        share.degenerate = true;
        return share;
    }
    int exponent = 0;
    const double mantissa = 2.0 * std::frexp(maxAbs, &exponent); // [1, 2): exponent bits, never a log2
    const int largest = format ? format->largestExponent : 0;
    int scaleExponent = exponent - 1 - largest;
    const double maxElement = format ? format->maxFinite : 127.0 / 64.0;
    const int mantissaBits = format ? format->mantissaBits : 6;
    switch (grid.mxRule) {
    case MxRule::Floor:
    case MxRule::FourThirds:
        break;
    case MxRule::Even:
        scaleExponent += mantissa >= 1.75 ? 1 : 0;
        break;
    case MxRule::EvenElem:
        scaleExponent += mantissa >= 2.0 - std::ldexp(1.0, -(mantissaBits + 1)) ? 1 : 0;
        break;
    case MxRule::Ceil:
        scaleExponent += mantissa > std::ldexp(maxElement, -largest) ? 1 : 0;
        break;
    }
    share.representable = std::isfinite(maxAbs) && scaleExponent <= 127; // above it the byte would be NaN
    scaleExponent = std::clamp(scaleExponent, -127, 127);
    share.scale = std::ldexp(1.0, scaleExponent);
    if (grid.mxRule == MxRule::FourThirds) {
        share.scale = share.scale * 4.0 / 3.0;
    }
    share.step = share.scale * unit;
    return share;
}

double nvfp4TensorScale(const NumberGrid &grid, double tensorMax)
{
    const double limit = grid.fourOverSix ? kNvFourOverSixLimit : kNvLargestScale;
    return tensorMax > 0.0 ? static_cast<double>(static_cast<float>(tensorMax / (6.0 * limit))) : 1.0;
}

ShareStep stepOfNvBlock(double maxAbs, double tensorScale, double divisor)
{
    ShareStep share;
    if (maxAbs == 0.0) {
        share.degenerate = true;
        return share;
    }
    const double toSix = maxAbs / (6.0 * tensorScale);
    const double raw = divisor == 4.0 ? 1.5 * toSix : toSix;
    const double scale = decodeFloat(encodeFloat(std::clamp(raw, kNvSmallestScale, kNvLargestScale), kE4M3), kE4M3);
    share.underflow = raw <= kNvSmallestScale / 2.0; // would have been stored as zero
    share.step = scale * tensorScale;
    share.scale = share.step;
    share.representable = std::isfinite(raw) && isNormal(share.step);
    return share;
}

ShareStep chooseNvBlock(const NumberGrid &grid, std::span<const double> values, double maxAbs, double tensorScale)
{
    const ShareStep six = stepOfNvBlock(maxAbs, tensorScale, 6.0);
    if (!grid.fourOverSix || six.degenerate || !six.representable) {
        return six;
    }
    const ShareStep four = stepOfNvBlock(maxAbs, tensorScale, 4.0);
    const CodeGrid codes = codeGridOf(grid);
    const bool fourIsBetter = squaredErrorOf(codes, four, values) < squaredErrorOf(codes, six, values);
    return fourIsBetter && four.representable ? four : six;
}

double squaredErrorOf(const CodeGrid &codes, const ShareStep &step, std::span<const double> values)
{
    return withCoder(codes, step, [values](auto coder) {
        constexpr std::size_t kLanes = 8;
        double sums[kLanes] = {};
        const auto squared = [coder](double x) {
            const double error = coder.value(coder.limited(coder.rounded(x))) - x;
            return error * error;
        };
        std::size_t i = 0;
        for (; i + kLanes <= values.size(); i += kLanes) {
            for (std::size_t j = 0; j < kLanes; ++j) {
                sums[j] += squared(values[i + j]);
            }
        }
        for (; i < values.size(); ++i) {
            sums[0] += squared(values[i]);
        }
        return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    });
}

} // namespace planish
