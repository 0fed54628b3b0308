#!/usr/bin/env bash
# Installs what is missing, builds and runs every test. Ends with ctest's summary.
#   bash tests/run.sh [release|asan|tsan|fuzz [SECONDS]]
set -euo pipefail
cd "$(dirname "$0")/.."
. app/dependencies.sh

kind=${1:-release}
planish_install "${planish_build_packages[@]}" "${planish_test_packages[@]}"
# ccache makes every later build quick; it is used when present, so install it where tests are built.
planish_install ccache || true

case $kind in
release)
    planish_build release
    ctest --test-dir build/release --output-on-failure -j "$(nproc)"
    ;;
asan)
    planish_build asan
    ctest --test-dir build/asan --output-on-failure -j "$(nproc)"
    ;;
tsan)
    # Threads live in the kernels, the evaluator and the window's lanes; the rest has none of its own.
    planish_build tsan thread_tests
    ctest --test-dir build/tsan --output-on-failure -j "$(nproc)" -L threads
    ;;
fuzz)
    bash tests/fuzz/run.sh "${2:-60}"
    ;;
*)
    echo "error: $kind: unknown kind of run; release, asan, tsan or fuzz was expected" >&2
    exit 2
    ;;
esac
