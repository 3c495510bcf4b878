#!/bin/sh
# offline_test.sh -- without a network the build goes on and says that report pages will draw plain SVG; LAMEMO_UPLOT=ON says
# that it cannot.
# Usage: offline_test.sh BUILD SOURCE
set -eu
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    cat "$work/log"
    echo "FAIL: $*" >&2
    exit 1
}

# Port 9 discards: a registry that nobody reaches, and no package of an earlier build.
configure() {
    env npm_config_registry=http://127.0.0.1:9/ npm_config_cache="$work/cache" cmake -S "$source" -B "$work/build" -G Ninja \
        -DLAMEMO_CUDA=OFF -DLAMEMO_MPI=OFF -DLAMEMO_TESTS=OFF "$@" > "$work/log" 2>&1
}
configure || fail "the build needs a network"
grep -q "uPlot: .*report pages draw plain SVG" "$work/log" || fail "it does not say what is missing"
grep -q "lamemo .*no uPlot" "$work/log" || fail "the summary does not say it"
grep -q 'uplot_css=;uplot_js=;' "$work/build/build.ninja" || fail "something is embedded as uPlot"
if configure -DLAMEMO_UPLOT=ON; then
    fail "LAMEMO_UPLOT=ON passes without uPlot"
fi
grep -q "LAMEMO_UPLOT=ON: npm could not install uplot" "$work/log" || fail "LAMEMO_UPLOT=ON does not say why"
echo "without a network: plain SVG, and it says so"
