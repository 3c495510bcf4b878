#!/usr/bin/env bash
# check-terms.sh finds a word of its list, and only outside code.
set -euo pipefail
cd "$(dirname "$0")/.."
file=$(mktemp --suffix=.md)
trap 'rm -f "$file"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
printf 'The model has learned its text by heart.\n' > "$file"
! scripts/check-terms.sh "$file" > /dev/null || fail "a word of the list was not found"
printf 'Fine.\n\n    prints: by heart\n\n```\nby heart\n```\nby heart <!-- term -->\n' > "$file"
scripts/check-terms.sh "$file" || fail "code, or a line that is marked, was not left out"
