# setup.sh -- what the tests in a browser need: node, Chromium, and two packages from npm in the build folder.
# Source it with $build and $source set; it sets $chromium.  Exit 77: something is missing here.
# shellcheck shell=sh disable=SC2154
skip() {
    echo "skipped: $*"
    exit 77
}

command -v node > /dev/null || skip "node is not installed"
command -v npm > /dev/null || skip "npm is not installed"
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$chromium" ] || skip "Chromium is not installed (Debian: apt-get install chromium)"

mkdir -p "$build/browser"
exec 9> "$build/browser/lock" # the tests may run side by side
flock 9
cp "$source"/tests/browser/package*.json "$build/browser"
if ! [ -f "$build/browser/node_modules/.done" ] ||
    [ "$source/tests/browser/package-lock.json" -nt "$build/browser/node_modules/.done" ]; then
    (cd "$build/browser" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --ignore-scripts --no-audit --no-fund \
        --loglevel=error --fetch-retries=0 --fetch-timeout=30000) > "$build/browser/npm.log" 2>&1 ||
        skip "npm could not install playwright-core and axe-core: $(tail -n 1 "$build/browser/npm.log")"
    touch "$build/browser/node_modules/.done"
fi
flock -u 9
exec 9>&-
