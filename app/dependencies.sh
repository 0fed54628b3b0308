# Packages Planish needs, and how to install those that are missing. Sourced by app/run.sh and tests/run.sh; does nothing when all are there.
# A line with `|` lists alternative names, first available wins (Debian and Ubuntu differ).

planish_build_packages=(
    g++ cmake ninja-build pkg-config
    qt6-base-dev "qt6-charts-dev|libqt6charts6-dev" "qt6-svg-dev|libqt6svg6-dev" libqt6opengl6-dev libgl-dev
    libeigen3-dev libhdf5-dev libtbb-dev libhwy-dev libdnnl-dev libdeflate-dev liblz4-dev libzstd-dev libblosc-dev "libexpected-dev|libtl-expected-dev"
    nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libssl-dev
    fonts-dejavu-core qt6-qpa-plugins
)
planish_test_packages=(python3 python3-numpy python3-jsonschema python3-yaml python3-h5py libbenchmark-dev)

planish_is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# Prints the packages of the arguments that are missing, one name each.
planish_missing() {
    local entry name found
    for entry in "$@"; do
        found=""
        for name in ${entry//|/ }; do
            if planish_is_installed "$name"; then found=yes; fi
        done
        [ -n "$found" ] || echo "$entry"
    done
}

planish_apt() {
    local sudo="" try
    [ "$(id -u)" = 0 ] || sudo=sudo
    # DPkg::Lock::Timeout does not cover `apt-get update`, so that one is tried again.
    if [ "$1" = update ]; then
        for try in 1 2 3 4 5; do
            $sudo apt-get update -qq && return 0
            sleep 5
        done
        return 1
    fi
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"
}

# planish_install PACKAGE…: installs what is missing.
planish_install() {
    local missing=() entry name chosen=()
    mapfile -t missing < <(planish_missing "$@")
    [ "${#missing[@]}" -gt 0 ] && [ -n "${missing[0]}" ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "error: this system has no apt-get; Planish builds on Debian 12 and Ubuntu 24.04, elsewhere install: ${missing[*]}" >&2
        return 1
    fi
    planish_apt update || { echo "error: apt-get update failed; a working package registry was expected" >&2; return 1; }
    for entry in "${missing[@]}"; do
        name=""
        for candidate in ${entry//|/ }; do
            if apt-cache show "$candidate" >/dev/null 2>&1; then name=$candidate; break; fi
        done
        if [ -z "$name" ]; then
            echo "error: no package for $entry; Debian 12 or Ubuntu 24.04 was expected" >&2
            return 1
        fi
        chosen+=("$name")
    done
    echo "installing: ${chosen[*]}"
    planish_apt install -y -qq --no-install-recommends "${chosen[@]}" >/dev/null || {
        echo "error: apt-get install failed for: ${chosen[*]}" >&2
        return 1
    }
}

# planish_build PRESET TARGET…: configures once and builds (all targets when none is named).
planish_build() {
    local preset=$1 jobs
    shift
    jobs=$(nproc)
    # With ccache, a second clone finds the objects of the first: paths are kept relative to the source folder.
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
    cmake --preset "$preset" >"build-$preset.log" 2>&1 || { cat "build-$preset.log" >&2; rm -f "build-$preset.log"; return 1; }
    rm -f "build-$preset.log"
    if [ $# -gt 0 ]; then
        cmake --build --preset "$preset" -j "$jobs" --target "$@"
    else
        cmake --build --preset "$preset" -j "$jobs"
    fi
}
