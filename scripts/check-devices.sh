#!/usr/bin/env bash
# Nothing above src/ops asks which device it computes on: a lam_dev says what it can do (own_memory, tolerance, ...).
# Finds comparisons with a device's name, or with the name of the device itself, outside src/ops and outside tests.
#   scripts/check-devices.sh [FOLDER]     default: src
set -euo pipefail
cd "$(dirname "$0")/.."
found=$(grep -rnE --include='*.c' --include='*.h' --include='*.inc' \
    'str(n)?cmp\([^)]*"(cuda|cpu|ref|ref16)"|(ops->name|device)\[[0-9]\]' "${1:-src}" |
    grep -vE '^[^:]*/ops/|_test\.c:|_fuzz\.c:' || true)
[ -z "$found" ] || { echo "$found"; echo "ask the device what it can do (lam_dev in src/ops/ops.h), not what it is called"; exit 1; }
