#include "kernels/share_codes.h"

#include "kernels/share_coders.h"

namespace planish {

namespace {

constexpr std::size_t kLanes = 8;
constexpr double kTieTolerance = 1e-6; // near_ties of cli.md, "quantize"

/// Sums of kLanes independent lanes, so that loops vectorise and the order is fixed.
struct LaneSums {
    double zeroed[kLanes] = {}, saturated[kLanes] = {}, zeroedEnergy[kLanes] = {}, energy[kLanes] = {}, error[kLanes] = {};

    static double total(const double (&v)[kLanes]) { return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])); }
    void addTo(QuantizeCounts &counts) const
    {
        counts.zeroed += static_cast<std::size_t>(total(zeroed));
        counts.saturated += static_cast<std::size_t>(total(saturated));
        counts.zeroedEnergy += total(zeroedEnergy);
        counts.energy += total(energy);
        counts.squaredError += total(error);
    }
};

/// `input` is what is coded, `original` what the error is taken against (they differ by a bound or a cast).
template <class Coder, class ErrorType>
inline void codeOne(const Coder &coder, double input, double original, bool clamped, double *reconstructed, ErrorType *error,
                    LaneSums &sums, std::size_t lane)
{
    const double rounded = coder.rounded(input);
    const double limited = coder.limited(rounded);
    const double value = coder.value(limited);
    const double difference = value - original;
    const double square = original * original;
    const double isZeroed = (original != 0.0) & (value == 0.0) ? 1.0 : 0.0;
    *reconstructed = value;
    *error = static_cast<ErrorType>(difference);
    sums.zeroed[lane] += isZeroed;
    sums.saturated[lane] += (limited != rounded) | clamped ? 1.0 : 0.0;
    sums.zeroedEnergy[lane] += isZeroed * square;
    sums.energy[lane] += square;
    sums.error[lane] += difference * difference;
}

template <class Coder, class ErrorType>
void codePlain(const Coder &coder, const ShareRun &run, const CodedRun<ErrorType> &out, LaneSums &sums)
{
    const double *x = run.values;
    double *value = out.reconstructed;
    ErrorType *error = out.errors;
    std::size_t i = 0;
    for (; i + kLanes <= run.count; i += kLanes) {
        for (std::size_t j = 0; j < kLanes; ++j) {
            codeOne(coder, x[i + j], x[i + j], false, value + i + j, error + i + j, sums, j);
        }
    }
    for (; i < run.count; ++i) {
        codeOne(coder, x[i], x[i], false, value + i, error + i, sums, 0);
    }
}

template <class Coder, class ErrorType>
void codeWithExceptions(const Coder &coder, const CodeGrid &codes, const ShareRun &run, const CodedRun<ErrorType> &out,
                        LaneSums &sums)
{
    for (std::size_t i = 0; i < run.count; ++i) {
        const double x = run.values[i];
        if (run.exact && run.exact[i]) {
            out.reconstructed[i] = x;
            out.errors[i] = ErrorType(0);
            sums.energy[i % kLanes] += x * x;
            continue;
        }
        const bool clamped = run.bound >= 0.0 && std::fabs(x) > run.bound;
        codeOne(coder, codedInput(codes, x, run.bound), x, clamped, out.reconstructed + i, out.errors + i, sums, i % kLanes);
    }
}

bool nearHalf(double t, double tolerance)
{
    return std::fabs(std::fabs(t - std::floor(t)) - 0.5) <= tolerance;
}

/// Elements within 1e-6 relative of a rounding tie, and all elements of a share whose zero point is at one.
bool nearTie(const CodeGrid &codes, const ShareStep &step, double x)
{
    const double t = step.multiplier != 0.0 ? x * step.multiplier : x / step.step;
    if (codes.format) {
        const double units = t / spacingAt(t, *codes.format);
        return t != 0.0 && nearHalf(units, kTieTolerance * std::fabs(units));
    }
    return nearHalf(codes.roundsSum ? t + step.zero : t, kTieTolerance * std::max(1.0, std::fabs(t)));
}

template <class Coder> std::int16_t codeOf(const Coder &coder, const CodeGrid &codes, double x)
{
    const double limited = coder.limited(coder.rounded(x));
    if (!codes.format) {
        return static_cast<std::int16_t>(limited);
    }
    return static_cast<std::int16_t>(signedCode(encodeFloat(limited, *codes.format), *codes.format));
}

} // namespace

double codedInput(const CodeGrid &codes, double x, double bound)
{
    const double cast = codes.castsInput ? roundToHalf(x) : x;
    if (bound < 0.0) {
        return cast;
    }
    return cast < -bound ? -bound : cast > bound ? bound : cast;
}

void addCounts(QuantizeCounts &a, const QuantizeCounts &b)
{
    a.elements += b.elements;
    a.zeroed += b.zeroed;
    a.saturated += b.saturated;
    a.zeroedEnergy += b.zeroedEnergy;
    a.energy += b.energy;
    a.squaredError += b.squaredError;
    a.degenerateShares += b.degenerateShares;
    a.scaleUnderflow += b.scaleUnderflow;
    a.nearTies += b.nearTies;
}

template <class ErrorType>
void codeRun(const NumberGrid &grid, const CodeGrid &codes, const ShareStep &step, const ShareRun &run,
             const CodedRun<ErrorType> &out, QuantizeCounts &counts)
{
    counts.elements += run.count;
    LaneSums sums;
    withCoder(codes, step, [&](auto coder) {
        if (run.exact || run.bound >= 0.0 || codes.castsInput) {
            codeWithExceptions(coder, codes, run, out, sums);
        } else {
            codePlain(coder, run, out, sums);
        }
        if (!out.codes) {
            return;
        }
        for (std::size_t i = 0; i < run.count; ++i) {
            const bool exact = run.exact && run.exact[i];
            const double input = codedInput(codes, run.values[i], run.bound);
            out.codes[i] = exact ? std::int16_t(0) : codeOf(coder, codes, input);
            const bool halfExtreme =
                grid.dialect == Dialect::Half && isInteger(grid.format) &&
                std::fabs(std::fabs(input / step.step) - (codes.highest + 0.5)) <= kTieTolerance * codes.highest;
            counts.nearTies += !exact && (halfExtreme || nearTie(codes, step, input)) ? 1 : 0;
            counts.nearTies += !exact && step.zeroAtTie ? 1 : 0; // a sum by definition: such an element may count twice
        }
    });
    sums.addTo(counts);
}

template void codeRun<float>(const NumberGrid &, const CodeGrid &, const ShareStep &, const ShareRun &, const CodedRun<float> &,
                             QuantizeCounts &);
template void codeRun<double>(const NumberGrid &, const CodeGrid &, const ShareStep &, const ShareRun &, const CodedRun<double> &,
                              QuantizeCounts &);

} // namespace planish
