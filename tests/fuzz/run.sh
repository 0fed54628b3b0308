#!/usr/bin/env bash
# Damages the files of the corpus under AddressSanitizer and reads them, 60 s for each reader.
#   bash tests/fuzz/run.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
. app/dependencies.sh

seconds=${1:-60}
planish_build asan fuzz_readers
# Other seeds every day; a finding prints the seed that makes it again.
seed=$(date +%Y%j000000)
corpus=tests/fuzz/corpus
failed=0
for reader in hdf5 weights safetensors plan candidates scores config; do
    files=("$corpus/$reader")
    case $reader in
    hdf5) files=("$corpus/hdf5" "$corpus/matlab" tests/golden/foreign/*.h5) ;;
    weights) files=("$corpus/hdf5" tests/golden/foreign/keras_legacy_weights.h5) ;;
    esac
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 build/asan/bin/fuzz_readers "$reader" "${files[@]}" --seconds "$seconds" --seed "$seed" ||
        failed=1
done
exit $failed
