#!/bin/sh
# browser_test.sh -- report pages in a real browser: tests/browser/check.mjs, with what it needs.
# Usage: browser_test.sh BUILD SOURCE [SCREENSHOTS]     exit 77: node, npm or Chromium is missing here
set -eu
build=$1
source=$2
shots=${3:-}
skip() {
    echo "skipped: $*"
    exit 77
}

command -v node > /dev/null || skip "node is not installed"
command -v npm > /dev/null || skip "npm is not installed"
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$chromium" ] || skip "Chromium is not installed (Debian: apt-get install chromium)"

mkdir -p "$build/browser"
cp "$source"/tests/browser/package*.json "$build/browser"
if ! [ -f "$build/browser/node_modules/.done" ] ||
    [ "$source/tests/browser/package-lock.json" -nt "$build/browser/node_modules/.done" ]; then
    (cd "$build/browser" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --ignore-scripts --no-audit --no-fund \
        --loglevel=error --fetch-retries=0 --fetch-timeout=30000) > "$build/browser/npm.log" 2>&1 ||
        skip "npm could not install playwright-core and axe-core: $(tail -n 1 "$build/browser/npm.log")"
    touch "$build/browser/node_modules/.done"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/tests/make_page" "$work/gallery"
"$build/lamemo" report -q --plot none "$source"/docs/runs/*.gz --out "$work/runs" > /dev/null
NODE_PATH=$build/browser/node_modules node "$source/tests/browser/check.mjs" "$build/browser" "$chromium" "$shots" \
    "$work/gallery/report.html" "$work/runs/report.html"
