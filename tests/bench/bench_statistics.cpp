// One-pass statistics of stored rows in memory against reading them, and a whole `analyze` of a file against a plain pread.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/io/dump_writer.h"
#include "core/measure/statistics.h"
#include "kernels/float_codes.h"
#include "kernels/statistics.h"
#include "tests/bench/limits.h"

using namespace planish;

namespace {

constexpr std::size_t kBlockBytes = std::size_t(32) << 20, kMemoryBytes = std::size_t(256) << 20;

/// Pseudo-random magnitudes over several binades, as activations have.
void fill(StoredKind kind, std::byte *data, std::size_t bytes)
{
    std::uint64_t state = 11;
    for (std::size_t i = 0; i < bytes; i += byteSize(kind)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double uniform = static_cast<double>(state >> 11) / 9007199254740992.0 - .5;
        const double value = uniform * std::fabs(uniform) * 40.0;
        const std::uint16_t half = halfBits(value), brain = bfloat16Bits(value);
        const auto single = static_cast<float>(value);
        const void *from = kind == StoredKind::F16    ? static_cast<const void *>(&half)
                           : kind == StoredKind::Bf16 ? static_cast<const void *>(&brain)
                                                      : static_cast<const void *>(&single);
        std::memcpy(data + i, from, byteSize(kind));
    }
}

void checkAgainstPlainLoops(StoredKind kind, const std::byte *data, std::size_t channels)
{
    const std::size_t stride = channels * byteSize(kind), rows = 70;
    BlockStatistics fast(channels, 6.0), plain(channels, 6.0);
    accumulateRows(kind, data, rows, stride, fast, 1);
    accumulateRowsReference(kind, data, rows, stride, plain);
    double worst = 0.0;
    for (std::size_t k = 0; k < channels; ++k) {
        worst = std::max(worst, std::fabs(fast.energy[k] - plain.energy[k]) / plain.energy[k]);
    }
    bench::require(worst < 1e-12 && fast.overTau == plain.overTau && fast.histogram == plain.histogram,
                   "the statistics kernel differs from the plain loops");
}

void statistics(benchmark::State &state)
{
    const auto kind = static_cast<StoredKind>(state.range(0));
    const auto channels = static_cast<std::size_t>(state.range(1));
    const int threads = static_cast<int>(state.range(2));
    const std::size_t stride = channels * byteSize(kind), rows = kMemoryBytes / stride, blockRows = kBlockBytes / stride;
    const auto data = bench::alignedBuffer<std::byte>(kMemoryBytes);
    fill(kind, data.get(), kMemoryBytes);
    checkAgainstPlainLoops(kind, data.get(), channels);
    const double read = bench::readSeconds(data.get(), kMemoryBytes, threads);
    const double seconds = bench::medianSeconds(
        [&] {
            BlockStatistics sums(channels, 6.0);
            for (std::size_t row = 0; row < rows; row += blockRows) {
                accumulateRows(kind, data.get() + row * stride, std::min(blockRows, rows - row), stride, sums, threads);
            }
            benchmark::DoNotOptimize(sums.energy.data());
        },
        5);
    for (auto _ : state) {
        state.SetIterationTime(seconds);
    }
    state.counters["ratio"] = read / seconds;
    state.counters["GB/s"] = static_cast<double>(rows * stride) / seconds / 1e9;
}
BENCHMARK(statistics)
    ->Name("statistics/memory/of_read")
    ->ArgNames({"kind", "channels", "threads"})
    ->ArgsProduct({{int(StoredKind::F16), int(StoredKind::Bf16), int(StoredKind::F32)}, {576, 4096}, {1, 2}})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

/// A dump of one f16 edge in the temporary folder; PLANISH_BENCH_MIB sets its size (default 1024).
std::string writeFile(std::size_t channels)
{
    const char *asked = std::getenv("PLANISH_BENCH_MIB");
    const std::size_t bytes = (asked ? std::strtoull(asked, nullptr, 10) : 1024) << 20, rows = bytes / (2 * channels);
    const std::string file = (std::filesystem::temp_directory_path() / "planish_bench.h5").string();
    DumpHeader header;
    header.tokens.request.assign(rows, 0);
    auto writer = DumpWriter::create(file, header);
    bench::require(writer.has_value(), "the benchmark file cannot be written");
    DumpEdge edge;
    edge.id = EdgeId("layers.0.attn_in");
    edge.rows = rows;
    edge.channels = channels;
    bench::require(writer->addEdge(edge, {}).has_value(), "the edge cannot be declared");
    MatrixF block(1024, channels);
    for (std::size_t i = 0; i < block.size(); ++i) {
        block.data()[i] = static_cast<float>(std::sin(.37 * static_cast<double>(i)) * (i % channels == 3 ? 20.0 : 1.0));
    }
    for (std::size_t row = 0; row < rows; row += block.rows()) {
        const auto part = std::as_const(block).view().middleRows(0, std::min(block.rows(), rows - row));
        bench::require(writer->appendRows(edge.id, part).has_value(), "rows cannot be written");
    }
    bench::require(writer->finish().has_value(), "the benchmark file cannot be finished");
    return file;
}

void analyzeFile(benchmark::State &state)
{
    const auto channels = static_cast<std::size_t>(state.range(0));
    const std::string file = writeFile(channels);
    const auto dump = openDump(file, {});
    bench::require(dump.has_value() && (*dump)->info().edges.size() == 1, "the benchmark file cannot be opened");
    const DumpEdge &edge = (*dump)->info().edges.front();
    std::vector<std::int64_t> rows(edge.rows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        rows[r] = static_cast<std::int64_t>(r);
    }
    const double plain = bench::preadSeconds(file.c_str());
    const double seconds = bench::medianSeconds(
        [&] {
            const auto result = computeStatistics(**dump, edge, rows, {}, {});
            bench::require(result && result->tokens == rows.size() && result->channel.maxAbs[3] > 10.0,
                           "analyze gave wrong numbers");
        },
        3);
    for (auto _ : state) {
        state.SetIterationTime(seconds);
    }
    state.counters["ratio"] = plain / seconds;
    state.counters["GB/s"] = static_cast<double>(edge.rows * channels * 2) / seconds / 1e9;
    std::filesystem::remove(file);
}
BENCHMARK(analyzeFile)
    ->Name("analyze/f16_file/of_pread")
    ->ArgName("channels")
    ->Arg(4096)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

} // namespace
