#!/usr/bin/env bash
# Shows that check-includes.sh can fail: each wrong tree must be refused, the right one accepted.
set -euo pipefail
check="$(cd "$(dirname "$0")" && pwd)/check-includes.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fresh() { # the smallest tree that passes
    rm -rf "$tree/src" "$tree/docs"
    mkdir -p "$tree/src/core" "$tree/src/ops/ref" "$tree/src/ops/cpu" "$tree/docs"
    printf '## Include direction\n| `core` | |\n| `ops` | `core` |\n| `ops/ref` | `core` `ops` |\n| `ops/cpu` | `core` `ops` |\n' \
        > "$tree/docs/ARCHITECTURE.md"
    echo '#include "core/a.h"' > "$tree/src/core/a.c"
    echo '#include "core/a.h"' > "$tree/src/ops/b.h"
    echo '#include "ops/b.h"' > "$tree/src/ops/ref/b.c"
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
fresh; echo '  # include "ops/b.h"' >> "$tree/src/core/a.c"; expect 1 "core must not include ops"
fresh; echo '#include "ops/ref/b.h"' > "$tree/src/ops/cpu/c.c"; expect 1 "cpu must not include ref"
fresh; echo '#include "ops/ref/b.h"' > "$tree/src/ops/c.c"; expect 1 "ops must not include a back-end"
fresh; echo '#include "ops/ref/b.h"' > "$tree/src/ops/cpu/c_test.c"; expect 0 "a test may compare back-ends"
fresh; echo '#include "a.h"' >> "$tree/src/core/a.c"; expect 1 "includes are relative to src/"
fresh; mkdir "$tree/src/new"; echo '#include "core/a.h"' > "$tree/src/new/n.c"; expect 1 "a folder without a row"
fresh; sed -i 's/^| `core` | |/| `core` | `ops` |/' "$tree/docs/ARCHITECTURE.md"; expect 2 "a cycle in the table"
fresh; echo > "$tree/docs/ARCHITECTURE.md"; expect 2 "no table"
