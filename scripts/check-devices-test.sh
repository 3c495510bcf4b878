#!/usr/bin/env bash
# check-devices.sh finds a comparison with a device's name, and leaves src/ops alone.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
mkdir -p "$dir/train" "$dir/ops"
echo 'if (strcmp(dev->ops->name, "cuda") == 0)' > "$dir/ops/ops.c"
scripts/check-devices.sh "$dir" || fail "src/ops may know its devices"
cp "$dir/ops/ops.c" "$dir/train/run.c"
! scripts/check-devices.sh "$dir" > /dev/null || fail "a comparison with a name was not found"
