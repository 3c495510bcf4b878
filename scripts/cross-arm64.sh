#!/usr/bin/env bash
# Builds for aarch64 against Debian's arm64 libraries and runs tests under qemu-user; build/arm64 and build/arm64-root.
#   scripts/cross-arm64.sh            libraries, build, unit tests, traces
#   scripts/cross-arm64.sh test 2/8   of the tests the second of eight parts; the traces belong to the last
#   scripts/cross-arm64.sh root       only the libraries
#   scripts/cross-arm64.sh build      libraries and build
# The libraries are unpacked into a folder, not installed, so that nothing on this machine is replaced or removed and root is
# not needed.  TESTS: which unit tests, a regular expression of ctest.  Exit 77: a tool is missing; it is named.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-test}
part=${2:-1/1}
case $mode:$part in
root:1/1 | build:1/1 | test:[1-9]*/[1-9]*) ;;
*) echo "usage: scripts/cross-arm64.sh [root|build|test [I/N]]" >&2; exit 2 ;;
esac
root=$PWD/build/arm64-root
out=build/arm64
triple=aarch64-linux-gnu
packages=(libc6-dev libgcc-s1 libgomp1 libstdc++6 linux-libc-dev libopenblas-openmp-dev libjansson-dev zlib1g-dev
    libminizip-dev liblzma-dev libzstd-dev libutf8proc-dev libpcre2-dev check libmicrohttpd-dev libxxhash-dev libmd-dev)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

needs() { # needs COMMAND PACKAGE
    command -v "$1" > /dev/null || { echo "arm64: skipped: $2 is not installed"; exit 77; }
}
quietly() { "$@" > "$work/log" 2>&1 || { tail -40 "$work/log"; echo "arm64: FAILED: $*" >&2; exit 1; }; }

# apt with lists of its own: the machine keeps its architectures, and every package counts as not installed.
foreign_apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$root.apt/state" \
        -o Dir::State::status="$root.apt/status" -o Dir::Cache="$root.apt/cache" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User= -o APT::Install-Recommends=0 "$@"
}

# Files that update-alternatives would have made.
choose_openblas() {
    local lib=$root/usr/lib/$triple file
    for file in "$lib"/openblas-openmp/libopenblas.so*; do
        ln -sf "openblas-openmp/$(basename "$file")" "$lib/$(basename "$file")"
    done
    ln -sf ../openblas-openmp/pkgconfig/openblas.pc "$lib/pkgconfig/openblas.pc"
    for file in "$root"/usr/include/$triple/openblas-openmp/*.h; do
        ln -sf "openblas-openmp/$(basename "$file")" "$root/usr/include/$triple/$(basename "$file")"
    done
}

make_root() {
    local names=${packages[*]}
    [ "$(cat "$root/packages" 2> /dev/null)" != "$names" ] || return 0
    rm -rf "$root" "$root.apt"
    mkdir -p "$root" "$root.apt"/state/lists/partial "$root.apt"/cache/archives/partial
    : > "$root.apt/status"
    quietly foreign_apt update
    quietly foreign_apt -y --download-only install "${packages[@]}"
    for deb in "$root.apt"/cache/archives/*.deb; do
        quietly dpkg-deb -x "$deb" "$root"
    done
    choose_openblas
    # Links that begin at / mean the root.
    find "$root" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
        ln -srfn "$root$target" "$link"
    done
    rm -rf "$root.apt"
    echo "$names" > "$root/packages"
}

needs $triple-gcc gcc-aarch64-linux-gnu
needs apt-get apt
needs cmake cmake
echo "== arm64: libraries"
make_root
[ "$mode" != root ] || exit 0
echo "== arm64: build"
quietly cmake --preset arm64
grep -- '-- lamemo ' "$work/log" || true
quietly cmake --build --preset arm64 -j "${JOBS:-$(nproc)}"
[ "$mode" != build ] || exit 0

needs qemu-aarch64 qemu-user
echo "== arm64: tests under qemu-user"
ctest --preset arm64 -j "${JOBS:-$(nproc)}" ${TESTS:+-R "$TESTS"} -I "${part%/*},,${part#*/}" > "$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
grep -A 99 'tests passed' "$work/log"
[ "${part%/*}" = "${part#*/}" ] || exit 0
qemu-aarch64 -L "$root" $out/lamemo verify --device cpu tests/golden/*.safetensors
