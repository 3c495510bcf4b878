#!/bin/sh
# Is every npm package that the build or a test may install pinned: a version and an integrity hash in its lock file?
set -eu
cd "$(dirname "$0")/.."
find . \( -path ./build -o -name node_modules \) -prune -o -name package.json -print | while read -r file; do
    python3 - "$(dirname "$file")/package-lock.json" << 'END'
import json, sys
packages = json.load(open(sys.argv[1]))["packages"]
loose = [name for name, p in packages.items() if name and not ("version" in p and p.get("integrity", "").startswith("sha512-"))]
if loose or len(packages) < 2:
    sys.exit(f"{sys.argv[1]}: not pinned: {', '.join(loose) or 'no packages'}")
END
done
echo "npm packages are pinned"
