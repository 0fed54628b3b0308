// planish-bench: Google Benchmark; `ratio` is the share of a limit measured in the same run with the same threads (1 = the
// limit). Each benchmark checks its result before it starts the clock.
#include <benchmark/benchmark.h>

#include "kernels/backend_list.h"

int main(int argc, char **argv)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    for (const auto &row : planish::listBackends()) {
        benchmark::AddCustomContext(row.key, row.label + " (" + row.reason + ")");
    }
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
