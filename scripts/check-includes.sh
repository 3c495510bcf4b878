#!/usr/bin/env bash
# Checks every #include "..." under src/ against the table "Include direction" of
# docs/ARCHITECTURE.md.  Prints each offence; exit 1 if there is one, 2 if the table is unusable.
# Usage: scripts/check-includes.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# The table as lines "folder allowed allowed ...".
table=$(sed -n '/^## Include direction/,/^## [^I]/p' docs/ARCHITECTURE.md |
    { grep '^| `' || true; } | tr -d '|`')
[ -n "$table" ] || { echo "docs/ARCHITECTURE.md: no table under 'Include direction'" >&2; exit 2; }

# No cycles: the table itself must have an order.
echo "$table" | awk '{ print $1, $1; for (i = 2; i <= NF; i++) print $i, $1 }' | tsort > /dev/null ||
    { echo "docs/ARCHITECTURE.md: the include table has a cycle" >&2; exit 2; }

find src -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) \
    ! -name '*_test.c' ! -name '*_fuzz.c' -exec grep -HnE '^[ \t]*#[ \t]*include[ \t]*"' {} + |
    awk -F: -v table="$table" '
    # The row for a path: its longest prefix that the table knows.
    function row_of(path) {
        while (path != "" && !(path in rows))
            if (!sub("/[^/]*$", "", path)) path = ""
        return path
    }
    function offence(why) { print $1 ":" $2 ": " why; bad = 1 }
    BEGIN {
        count = split(table, lines, "\n")
        for (i = 1; i <= count; i++) {
            fields = split(lines[i], words, " ")
            rows[words[1]] = 1
            for (j = 2; j <= fields; j++) allowed[words[1], words[j]] = 1
        }
    }
    {
        seen++
        split($0, quoted, "\"")
        from = row_of(substr($1, 5)); header = quoted[2]; to = row_of(header)
        if (from == "") offence("folder is not in the table of docs/ARCHITECTURE.md")
        else if (header == "lamemo.h" && from !~ "^(core|io|data|ops)") next
        else if (to == "") offence("\"" header "\" is not a path from src/ into a known folder")
        else if (from != to && !((from, to) in allowed)) offence(from " may not include \"" header "\"")
    }
    END {
        if (!seen) { print "no includes found under src/"; exit 2 }
        if (!bad) print seen " includes, all in the allowed direction"
        exit bad
    }'
