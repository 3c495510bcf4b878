#!/usr/bin/env bash
# Is lamemo.spdx the list of what is linked?  Every library that the program, the shared library and modules of BUILD need must
# be in it, and those that it calls linked (DYNAMIC_LINK) must be needed; every package has a licence.
# Usage: scripts/check-spdx.sh BUILD [LIST]      exit 1: an offence; 77: readelf is missing
set -euo pipefail
build=${1:?"usage: scripts/check-spdx.sh BUILD [LIST]"}
list=${2:-$(dirname "$0")/../lamemo.spdx}
command -v readelf > /dev/null || { echo "spdx: skipped: binutils is not installed"; exit 77; }

files=("$build/lamemo" "$build/liblamemo.so")
for module in "$build"/lamemo-*.so; do
    [ ! -f "$module" ] || files+=("$module")
done
needed=$(readelf -d "${files[@]}" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
[ -n "$needed" ] || { echo "spdx: ${files[*]}: nothing is linked?" >&2; exit 1; }

# Lines "package linked|optional licence soname..." of the list.
packages=$(awk '
    function end() { if (name != "") print name, kind, licence == "" ? "-" : licence, sonames }
    /^PackageName: / { end(); name = $2; kind = "-"; licence = sonames = "" }
    /^PackageLicenseConcluded: / { licence = $2 }
    /sonames: / { sonames = $0; sub(/.*sonames: /, "", sonames); sub(/<\/text>.*/, "", sonames) }
    /^Relationship: .* DYNAMIC_LINK / { kind = "linked" }
    /^Relationship: .* OPTIONAL_COMPONENT_OF / { kind = "optional" }
    /^LicenseID: / { end(); name = "" }
    END { end() }' "$list")

bad=0
offence() { echo "$list: $*" >&2; bad=1; }
for library in $needed; do
    grep -qwF -- "$library" <<< "$packages" || offence "$library is linked and not listed"
done
while read -r name kind licence sonames; do
    case $licence in - | NOASSERTION | NONE) offence "package $name has no licence" ;; esac
    [ "$name" = lamemo ] || [ "$kind" != - ] || offence "package $name has no relationship with lamemo"
    if [ "$kind" = linked ]; then
        found=no
        for library in $sonames; do
            ! grep -qxF -- "$library" <<< "$needed" || found=yes
        done
        [ $found = yes ] || offence "package $name is listed as linked and is not"
    fi
done <<< "$packages"
[ $bad = 0 ] && echo "$(wc -w <<< "$needed") libraries are linked, all of them listed"
exit $bad
