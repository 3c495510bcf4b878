#!/usr/bin/env bash
# Builds lamemo and compares it with the reference traces in tests/golden.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/deps.sh
cmake --preset release > /dev/null
cmake --build --preset release -j "$(nproc)"
if build/release/lamemo verify --help > /dev/null 2>&1; then
    build/release/lamemo verify tests/golden/*.safetensors
else
    echo "built: build/release/lamemo"
fi
