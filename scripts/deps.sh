#!/usr/bin/env bash
# Installs what the build needs and is missing, with apt-get (Debian 12 and its relatives).
# Usage: scripts/deps.sh [full|demo]     full: also what scripts/test.sh full uses; demo: also the text of the demo
# Nothing is asked and nothing happens when all packages are there.
set -euo pipefail

packages=(build-essential cmake ninja-build pkg-config libdnnl-dev libopenblas-openmp-dev
    libjansson-dev check zlib1g-dev libminizip-dev liblzma-dev libzstd-dev libutf8proc-dev libpcre2-dev xz-utils
    libxxhash-dev libmd-dev libmicrohttpd-dev
    python3 python3-numpy libopenmpi-dev openmpi-bin)
case ${1:-} in
full) packages+=(clang libomp-dev clang-format fonts-dejavu-core chromium
    python3-pip python3-setuptools python3-wheel debhelper dh-python lintian debootstrap zsh fish
    python3-torch python3-matplotlib gcc-aarch64-linux-gnu qemu-user)
    command -v npm > /dev/null || packages+=(npm) ;; # any npm will do, Debian's or another
demo) packages+=(bible-kjv) ;;
esac

if ! command -v dpkg-query > /dev/null; then
    echo "deps: not a Debian system; make sure these exist: ${packages[*]}" >&2
    exit 0
fi
missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" = installed ] ||
        missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
    as_root=(sudo -n)
else
    echo "deps: missing packages, and no right to install them. Run as root:" >&2
    echo "    apt-get install ${missing[*]}" >&2
    exit 1
fi

echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y "$@" >> "$log" 2>&1; }
# The package lists may be absent or old: refresh them only if the first try fails.
if ! apt install --no-install-recommends "${missing[@]}"; then
    apt update && apt install --no-install-recommends "${missing[@]}" ||
        { cat "$log" >&2; echo "deps: apt-get could not install ${missing[*]}" >&2; exit 1; }
fi
