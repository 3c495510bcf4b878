#!/usr/bin/env bash
# Records to start from: core_seal_fuzz.sh FOLDER
set -euo pipefail
cd "$1"
printf '352441c2 3 a\n' > good
printf '352441c2 4 a\n00000000 0 b\n' > bad
