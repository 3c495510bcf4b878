#!/usr/bin/env bash
# Builds and tests everything.
#   scripts/test.sh         the fast tier: release build, all tests
#   scripts/test.sh full    also: ASan+UBSan, TSan, clang, 1,000 kills of a training (KILLS), cppcheck, fuzz targets
#                           (FUZZ_SECONDS each, default 60) and the fuzzer of the program (FUZZ_CLI_SECONDS for each
#                           class of files, default 10), the Debian packages, aarch64 under qemu
set -euo pipefail
cd "$(dirname "$0")/.."
tier=${1:-fast}
case $tier in fast | full) ;; *) echo "usage: scripts/test.sh [full]" >&2; exit 2 ;; esac
jobs=${JOBS:-$(nproc)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# What a command prints goes to the log and is shown if it fails; on a terminal the newest line shows that it goes on.
newest() {
    while IFS= read -r line; do
        printf '%s\n' "$line"
        [ ! -t 3 ] || printf '\r\033[K%.78s' "$line" >&3
    done
    [ ! -t 3 ] || printf '\r\033[K' >&3
}
logged() { "$@" 2>&1 | newest 3>&1 > "$log"; }
quietly() { logged "$@" || { cat "$log"; echo "FAILED: $*" >&2; exit 1; }; }

build() { # build PRESET
    echo "== $1: build"
    quietly cmake --preset "$1" -DLAMEMO_CUDA_ARCHS="${LAMEMO_CUDA_ARCHS:-90}" # only compiled: one is enough
    grep -- '-- lamemo ' "$log" || true
    quietly cmake --build --preset "$1" -j "$jobs"
}

check() { # check PRESET: build it and run its tests
    build "$1"
    echo "== $1: test"
    logged ctest --preset "$1" -j "$jobs" || { cat "$log"; exit 1; }
    grep -A 99 'tests passed' "$log"
}

if [ "$tier" = fast ]; then
    scripts/deps.sh
else
    scripts/deps.sh full
fi
check release

if [ "$tier" = full ]; then
    check debug
    check tsan
    check clang
    echo "== kill"
    quietly env LAMEMO="$PWD/build/release/lamemo" sh tests/kill/kill_test.sh "${KILLS:-1000}" "$(date +%s)"
    grep "kills over" "$log"
    scripts/fuzz.sh "${FUZZ_SECONDS:-60}"
    tests/fuzz/cli_fuzz.sh "${FUZZ_CLI_SECONDS:-10}"
    for what in twice chroot; do # needs debhelper, lintian; debootstrap and root
        echo "== packages: $what"
        scripts/deb.sh $what || [ $? -eq 77 ]
    done
    scripts/cross-arm64.sh || [ $? -eq 77 ] # needs gcc-aarch64-linux-gnu and qemu-user
    if command -v cppcheck > /dev/null; then
        echo "== cppcheck"
        # It does not see through Check's and jansson's macros, nor that designated arrays are filled: what is not
        # initialised is left to the compilers and sanitizers.  >> of a negative int is what gcc and clang say it is.
        quietly cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability \
            --suppress=missingIncludeSystem --suppress=invalidFunctionArg --suppress=unknownMacro \
            --suppress=uninitvar --suppress=legacyUninitvar --suppress=uninitStructMember \
            --suppress=shiftTooManyBitsSigned \
            -D_GNU_SOURCE -DLAM_HAVE_ONEDNN -I src -I tests src
    fi
fi
echo "== all passed"
