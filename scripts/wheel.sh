#!/usr/bin/env bash
# Makes a wheel of the Python package with the library, the program and the bundled model in it, without a network.
#   scripts/wheel.sh [BUILD [FOLDER]]      default build/release and build; needs python3-pip, -setuptools and -wheel
# The same build gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
out=${2:-build}
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import setuptools, wheel, pip' 2> /dev/null || {
    echo "wheel: install python3-pip, python3-setuptools and python3-wheel first" >&2
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    cmake --install "$build" --prefix "$work/prefix" --strip &&
        cp -r python "$work/python" &&
        find "$work/python" -name __pycache__ -prune -exec rm -r {} + &&
        umask 022 &&
        env LAMEMO_PREFIX="$work/prefix" SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-315532800}" \
            "$python" -m pip --disable-pip-version-check wheel --no-build-isolation --no-deps --no-index \
            --wheel-dir "$out" "$work/python"
} > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
ls "$out"/lamemo-*.whl
