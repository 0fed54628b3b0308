// Float Walsh-Hadamard transform of [2048, 4096] against a copy of the same matrix.
#include <benchmark/benchmark.h>

#include <cmath>

#include "kernels/cpu/hadamard.h"
#include "tests/bench/limits.h"

using namespace planish;

static void checkFirstRow(const float *in, const float *out, std::size_t cols)
{
    std::vector<double> row(in, in + cols), scratch;
    cpu::applyHadamard(row, HadamardStep{.block = cols}, scratch);
    double worst = 0.0;
    for (std::size_t k = 0; k < cols; ++k) {
        worst = std::max(worst, std::fabs(row[k] - out[k]));
    }
    bench::require(worst < 1e-4, "the float Hadamard transform differs from the double one");
}

static void hadamardRows(benchmark::State &state)
{
    constexpr std::size_t kRows = 2048, kCols = 4096;
    const int threads = static_cast<int>(state.range(0));
    const auto in = bench::alignedBuffer<float>(kRows * kCols), out = bench::alignedBuffer<float>(kRows * kCols);
    for (std::size_t i = 0; i < kRows * kCols; ++i) {
        in[i] = static_cast<float>(std::sin(.37 * static_cast<double>(i)));
        out[i] = 0.0f;
    }
    const cpu::Workers workers(threads);
    cpu::hadamardRows(in.get(), out.get(), kRows, kCols, workers);
    checkFirstRow(in.get(), out.get(), kCols);
    const double copy = bench::copySeconds(in.get(), out.get(), kRows * kCols * sizeof(float), threads);
    const double seconds = bench::medianSeconds([&] { cpu::hadamardRows(in.get(), out.get(), kRows, kCols, workers); });
    for (auto _ : state) {
        state.SetIterationTime(seconds);
    }
    state.counters["ratio"] = copy / seconds;
    state.counters["copy_ms"] = copy * 1e3;
}
BENCHMARK(hadamardRows)
    ->Name("hadamard/f32/2048x4096/of_copy")
    ->Arg(1)
    ->Arg(2)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
