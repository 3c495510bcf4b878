#!/usr/bin/env bash
# Looks for words in README, docs, model cards and help texts (docs/cli.md) that scripts/terms.txt replaces by the terms
# of the field.  Code blocks are left out: they show what programs print.  A line that needs such a word ends with the
# comment <!-- term -->.
#   scripts/check-terms.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
files=("$@")
[ ${#files[@]} -gt 0 ] || files=(README.md docs/*.md models/*.md models/*/*.md)
bad=0
while IFS=$'\t' read -r word instead; do
    case $word in '' | '#'*) continue ;; esac
    for file in "${files[@]}"; do
        found=$(awk '/^```/ { fenced = !fenced } !fenced && !/^    / && !/<!-- term -->/ { print FILENAME ":" FNR ": " $0 }' \
            "$file" | grep -iE "$word" || true)
        [ -z "$found" ] || { echo "$found"; echo "    write: $instead"; bad=1; }
    done
done < scripts/terms.txt
exit $bad
