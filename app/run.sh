#!/usr/bin/env bash
# Installs what is missing, builds, and opens the window on the sample. Without a display it makes the same tour offscreen.
#   bash app/run.sh [--build-only] [FILE] [planish options…]
set -euo pipefail
cd "$(dirname "$0")/.."
. app/dependencies.sh

buildOnly=no
arguments=()
for argument in "$@"; do
    if [ "$argument" = --build-only ]; then buildOnly=yes; else arguments+=("$argument"); fi
done

planish_install "${planish_build_packages[@]}"
planish_build release planish planish-cli
[ "$buildOnly" = no ] || { echo "built: build/release/bin/planish, build/release/bin/planish-cli"; exit 0; }

sample=sample_data/smollm2.h5
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    exec build/release/bin/planish "${arguments[@]:-$sample}"
fi
out=build/tour
mkdir -p "$out"
QT_QPA_PLATFORM=offscreen build/release/bin/planish --tour "$out" "${arguments[@]:-$sample}"
echo "no display: the tour is in $out (one picture per screen, the numbers in tour.txt):"
ls "$out"
