#!/usr/bin/env bash
# Shows that check-memories.sh can fail: each wrong tree must be refused, the right one accepted.
set -euo pipefail
check="$(cd "$(dirname "$0")" && pwd)/check-memories.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fresh() { # the smallest tree that passes
    rm -rf "$tree/src"
    mkdir -p "$tree/src/mem" "$tree/src/model" "$tree/src/cli"
    printf '/* MEMORY(comment) */\nMEMORY(xl)\nMEMORY(sink)\n' > "$tree/src/mem/memories.def"
    echo 'const char *name = "xl";' > "$tree/src/mem/xl.c"
    echo 'const char *name = "xlarge", *other = "an xl";' > "$tree/src/model/a.c"
}
expect() { # expect STATUS WHAT
    local status=0
    "$check" "$tree" > "$tree/out" 2>&1 || status=$?
    if [ "$status" != "$1" ]; then
        echo "FAILED: $2: exit $status, expected $1"; cat "$tree/out"; exit 1
    fi
    echo "ok: $2"
}

fresh; expect 0 "a clean tree passes"
fresh; echo 'if (strcmp(cfg->memory, "xl") == 0)' >> "$tree/src/model/a.c"; expect 1 "a comparison with a name"
fresh; echo 'if (has(cfg, "sink"))' >> "$tree/src/model/a.c"; expect 1 "a name that is new in the list"
fresh; echo '{.only = "xl"},' > "$tree/src/cli/rows.inc"; expect 1 "a table of options"
fresh; echo 'FLAG(x, .only = "xl")' > "$tree/src/cli/rows.def"; expect 1 "a table of settings"
fresh; echo 'ck_assert_str_eq(name, "xl");' > "$tree/src/model/a_test.c"; expect 0 "a test may name memories"
fresh; echo 'if (is(cfg, "comment"))' >> "$tree/src/model/a.c"; expect 0 "only lines of the list are names"
fresh; : > "$tree/src/mem/memories.def"; expect 2 "an empty list"
fresh; rm "$tree/src/mem/memories.def"; expect 2 "no list"
