// Quantizers against a copy of the matrix, and an exact W8A8 evaluation of one edge against its three products alone.
#include <benchmark/benchmark.h>

#include <cmath>

#include "kernels/backend_list.h"
#include "kernels/cpu/onednn_shim.h"
#include "kernels/cpu/workers.h"
#include "tests/bench/limits.h"

using namespace planish;

namespace {

constexpr std::size_t kRows = 2048, kChannels = 4096, kOutputs = 4096;

MatrixD waves(std::size_t rows, std::size_t cols, double frequency)
{
    MatrixD out(rows, cols);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out.data()[i] = std::sin(frequency * static_cast<double>(i)) * (i % cols == 7 ? 20.0 : 1.0);
    }
    return out;
}

void quantize(benchmark::State &state, const NumberGrid &grid)
{
    const int threads = static_cast<int>(state.range(0));
    const MatrixD x = waves(kRows, kChannels, .37);
    const auto backend = *makeBackend("cpu", threads), reference = *makeBackend("reference");
    const auto resident = *backend->upload(x.view());
    const auto few = x.view().middleRows(0, 8);
    const auto a = backend->quantize(**backend->upload(few), {.grid = grid, .wantCodes = true});
    const auto b = reference->quantize(**reference->upload(few), {.grid = grid, .wantCodes = true});
    bench::require(a && b && a->codes == b->codes, "codes differ from the reference");
    MatrixD target(kRows, kChannels);
    const double copy = bench::copySeconds(x.data(), target.data(), x.size() * sizeof(double), threads);
    const double seconds =
        bench::medianSeconds([&] { benchmark::DoNotOptimize(backend->quantize(*resident, {.grid = grid})); }, 5);
    for (auto _ : state) {
        state.SetIterationTime(seconds);
    }
    state.counters["ratio"] = copy / seconds;
    state.counters["Melem/s"] = static_cast<double>(x.size()) / seconds / 1e6;
}
#define PLANISH_QUANTIZE_BENCH(name, ...)                                                                                        \
    BENCHMARK_CAPTURE(quantize, name, NumberGrid{__VA_ARGS__})                                                                   \
        ->Arg(1)                                                                                                                 \
        ->Arg(2)                                                                                                                 \
        ->UseManualTime()                                                                                                        \
        ->Iterations(1)                                                                                                          \
        ->Unit(benchmark::kMillisecond)
PLANISH_QUANTIZE_BENCH(int8_token, .format = NumberFormat::Int8);
PLANISH_QUANTIZE_BENCH(int4_group128_asym, .format = NumberFormat::Int4, .sharing = Sharing::Group, .group = 128,
                       .dialect = Dialect::Zero);
PLANISH_QUANTIZE_BENCH(mxfp4, .format = NumberFormat::MxFp4);
PLANISH_QUANTIZE_BENCH(nvfp4, .format = NumberFormat::NvFp4);

/// Seconds of the three float products of the edge on the evaluation's own tiles and threads.
double threeProducts(int threads)
{
    const auto a = bench::alignedBuffer<float>(kRows * kChannels), b = bench::alignedBuffer<float>(kOutputs * kChannels);
    std::fill_n(a.get(), kRows * kChannels, .5f);
    std::fill_n(b.get(), kOutputs * kChannels, .25f);
    const cpu::TileGemm gemm(kChannels);
    const cpu::Workers workers(threads);
    const std::size_t outputTiles = kOutputs / cpu::kGemmTileOutputs, tiles = kRows / cpu::kGemmTileRows * outputTiles;
    return bench::medianSeconds(
        [&] {
            workers.forEach(3 * tiles, [&](std::size_t index) {
                thread_local std::vector<float> tile(cpu::kGemmTileRows * cpu::kGemmTileOutputs);
                thread_local cpu::GemmScratch scratch;
                const std::size_t t = index % tiles;
                gemm.multiply(a.get() + t / outputTiles * cpu::kGemmTileRows * kChannels,
                              b.get() + t % outputTiles * cpu::kGemmTileOutputs * kChannels, cpu::kGemmTileOutputs, tile.data(),
                              scratch);
            });
        },
        3);
}

void evaluateEdge(benchmark::State &state)
{
    const int threads = static_cast<int>(state.range(0));
    const auto backend = *makeBackend("cpu", threads);
    const auto x = *backend->upload(waves(kRows, kChannels, .37).view()),
               w = *backend->upload(waves(kOutputs, kChannels, .71).view());
    const auto y = *backend->product(*x, *w);
    const QuantizeRequest request{.grid = {.format = NumberFormat::Int8}};
    const auto exact = [&] {
        const auto qx = *backend->quantize(*x, request), qw = *backend->quantize(*w, request);
        return *backend->residual(qx.error.get(), *x, *qx.reconstructed, qw.error.get(), *w, *y, TermDetail::All, {});
    };
    const ResidualSums sums = exact();
    double error = 0.0, reference = 0.0;
    for (std::size_t m = 0; m < kRows; ++m) {
        error += sums.rowError[m];
        reference += sums.rowReference[m];
    }
    bench::require(error > 0.0 && error < 1e-2 * reference, "the W8A8 error of the edge is implausible");
    const double products = threeProducts(threads);
    const double seconds = bench::medianSeconds([&] { benchmark::DoNotOptimize(exact()); }, 3);
    for (auto _ : state) {
        state.SetIterationTime(seconds);
    }
    state.counters["ratio"] = products / seconds;
    state.counters["GFLOP/s"] = 6.0 * kRows * kChannels * kOutputs / products / 1e9;
}
BENCHMARK(evaluateEdge)
    ->Name("evaluate/w8a8/2048x4096x4096/of_three_products")
    ->Arg(1)
    ->Arg(2)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

} // namespace
