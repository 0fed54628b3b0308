#include "core/measure/magnitude_bins.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <tbb/enumerable_thread_specific.h>

#include "kernels/cpu/workers.h"

namespace planish
{

namespace
{

// Bins with at most this many elements are collected and selected from instead of being counted again (32 MiB of doubles).
constexpr std::uint64_t kCollect = 4u << 20;
constexpr std::size_t kRowsPerTask = 64;

template <class Float> struct Bits;
template <> struct Bits<float> {
    using Word = std::uint32_t;
    static constexpr int kWidth = 31;
    static constexpr Word kMask = 0x7fffffffu, kInfinity = 0x7f800000u;
};
template <> struct Bits<double> {
    using Word = std::uint64_t;
    static constexpr int kWidth = 63;
    static constexpr Word kMask = 0x7fffffffffffffffull, kInfinity = 0x7ff0000000000000ull;
};

template <class Float> typename Bits<Float>::Word magnitudeBits(const std::byte *at)
{
    typename Bits<Float>::Word word;
    std::memcpy(&word, at, sizeof word);
    return word & Bits<Float>::kMask;
}

// Calls each(word, local) for every finite element; `local` is private to a thread.
template <class Float, class Local, class Each>
void overElements(const RawRows &raw, std::size_t channels, tbb::enumerable_thread_specific<Local> &locals, const Each &each)
{
    cpu::Workers().forEach((raw.rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
        Local &local = locals.local();
        for (std::size_t r = task * kRowsPerTask; r < std::min(raw.rows, (task + 1) * kRowsPerTask); ++r) {
            const std::byte *row = raw.data + r * raw.strideBytes;
            for (std::size_t k = 0; k < channels; ++k) {
                const auto word = magnitudeBits<Float>(row + k * sizeof(Float));
                if (word < Bits<Float>::kInfinity)
                    each(word, local);
            }
        }
    });
}

struct Coarse {
    std::vector<std::uint64_t> counts = std::vector<std::uint64_t>(kMagnitudeBins, 0);
    std::uint64_t above = 0;
};

template <class Float>
Expected<void> coarsePass(const CountedRows &rows, const std::vector<std::int32_t> &rowUnit, double bound, RadixMedian &result,
                          std::stop_token stop)
{
    using Word = typename Bits<Float>::Word;
    // `bound` is half of a stored maximum, so it is a Float unless it underflows; rounding down keeps "above" right even then.
    const auto limit = std::bit_cast<Word>(static_cast<Float>(bound)) & Bits<Float>::kMask;
    return rows.visit(
        [&](const RawRows &raw) {
            forUnitRuns(raw, rowUnit, [&](const RawRows &run, std::int32_t unit) {
                tbb::enumerable_thread_specific<Coarse> locals;
                overElements<Float>(run, rows.channels(), locals, [&](Word word, Coarse &local) {
                    ++local.counts[word >> (Bits<Float>::kWidth - 16)];
                    local.above += word > limit;
                });
                auto &counts = result.unitCounts[static_cast<std::size_t>(unit)];
                for (const Coarse &local : locals) {
                    for (std::size_t b = 0; b < kMagnitudeBins; ++b)
                        counts[b] += local.counts[b];
                    result.above += local.above;
                }
            });
        },
        stop);
}

// The element of rank `rank` among those whose word starts with `prefix`.
template <class Float> struct Refine {
    using Word = typename Bits<Float>::Word;
    const CountedRows &rows;
    std::stop_token stop;
    Word prefix = 0;
    int shift = 0; ///< bits below the prefix
    std::uint64_t rank = 0, count = 0;

    Expected<void> collect()
    {
        tbb::enumerable_thread_specific<std::vector<Word>> locals;
        auto done = rows.visit(
            [&](const RawRows &raw) {
                overElements<Float>(raw, rows.channels(), locals, [&](Word word, std::vector<Word> &local) {
                    if ((word >> shift) == prefix)
                        local.push_back(word);
                });
            },
            stop);
        if (!done)
            return done;
        std::vector<Word> all;
        for (const auto &local : locals)
            all.insert(all.end(), local.begin(), local.end());
        std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
        prefix = all[static_cast<std::size_t>(rank)];
        shift = 0;
        return {};
    }

    Expected<void> narrow()
    {
        const int bits = std::min(16, shift), below = shift - bits;
        tbb::enumerable_thread_specific<Coarse> locals;
        auto done = rows.visit(
            [&](const RawRows &raw) {
                overElements<Float>(raw, rows.channels(), locals, [&](Word word, Coarse &local) {
                    if ((word >> shift) == prefix)
                        ++local.counts[(word >> below) & ((Word{1} << bits) - 1)];
                });
            },
            stop);
        if (!done)
            return done;
        std::vector<std::uint64_t> counts(kMagnitudeBins, 0);
        for (const Coarse &local : locals)
            for (std::size_t b = 0; b < kMagnitudeBins; ++b)
                counts[b] += local.counts[b];
        std::size_t bin = 0;
        while (rank >= counts[bin])
            rank -= counts[bin++];
        prefix = (prefix << bits) | static_cast<Word>(bin);
        shift = below;
        count = counts[bin];
        return {};
    }
};

template <class Float>
Expected<RadixMedian> radix(const CountedRows &rows, const std::vector<std::int32_t> &rowUnit, std::size_t units, double bound,
                            std::stop_token stop)
{
    RadixMedian result;
    result.unitCounts.assign(units, std::vector<std::uint64_t>(kMagnitudeBins, 0));
    if (auto done = coarsePass<Float>(rows, rowUnit, bound, result, stop); !done)
        return tl::make_unexpected(done.error());
    std::vector<std::uint64_t> counts(kMagnitudeBins, 0);
    std::uint64_t total = 0;
    for (const auto &unit : result.unitCounts)
        for (std::size_t b = 0; b < kMagnitudeBins; ++b) {
            counts[b] += unit[b];
            total += unit[b];
        }
    if (total == 0)
        return result;
    Refine<Float> refine{rows, stop, 0, Bits<Float>::kWidth - 16, (total - 1) / 2, 0};
    std::size_t bin = 0;
    while (refine.rank >= counts[bin])
        refine.rank -= counts[bin++];
    refine.prefix = static_cast<typename Bits<Float>::Word>(bin);
    refine.count = counts[bin];
    while (refine.shift > 0) {
        auto done = refine.count <= kCollect ? refine.collect() : refine.narrow();
        if (!done)
            return tl::make_unexpected(done.error());
    }
    result.median = std::bit_cast<Float>(refine.prefix);
    return result;
}

} // namespace

double binMagnitude(StoredKind kind, std::size_t bin)
{
    switch (kind) {
    case StoredKind::F16: {
        const int exponent = static_cast<int>(bin >> 10) & 0x1f, mantissa = static_cast<int>(bin & 0x3ff);
        return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
    }
    case StoredKind::Bf16:
        return std::bit_cast<float>(static_cast<std::uint32_t>(bin) << 16);
    case StoredKind::F32:
        return std::bit_cast<float>((static_cast<std::uint32_t>(bin) << 15) | (bin ? 1u << 14 : 0u));
    case StoredKind::F64:
        break;
    }
    return std::bit_cast<double>((static_cast<std::uint64_t>(bin) << 47) | (bin ? 1ull << 46 : 0ull));
}

std::optional<double> medianOfBins(StoredKind kind, const std::vector<std::uint64_t> &counts)
{
    std::uint64_t total = 0;
    for (std::uint64_t count : counts)
        total += count;
    if (total == 0)
        return std::nullopt;
    std::uint64_t rank = (total - 1) / 2;
    std::size_t bin = 0;
    while (rank >= counts[bin])
        rank -= counts[bin++];
    return binMagnitude(kind, bin);
}

std::uint64_t countAbove(StoredKind kind, const std::vector<std::uint64_t> &counts, double bound)
{
    // 16-bit magnitudes have 15 bits; what lies above them would read as negative.
    const std::size_t bins = kind == StoredKind::F16 || kind == StoredKind::Bf16 ? kMagnitudeBins / 2 : kMagnitudeBins;
    std::uint64_t above = 0;
    for (std::size_t bin = std::min(bins, counts.size()); bin-- > 0 && !(binMagnitude(kind, bin) <= bound);)
        above += counts[bin];
    return above;
}

Expected<RadixMedian> radixMedian(const CountedRows &rows, const std::vector<std::int32_t> &rowUnit, std::size_t units,
                                  double bound, std::stop_token stop)
{
    if (rows.kind() == StoredKind::F32)
        return radix<float>(rows, rowUnit, units, bound, stop);
    return radix<double>(rows, rowUnit, units, bound, stop);
}

std::optional<double> medianMagnitude(std::vector<double> values)
{
    std::erase_if(values, [](double x) { return !std::isfinite(x); });
    if (values.empty())
        return std::nullopt;
    for (double &x : values)
        x = std::abs(x);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

} // namespace planish
