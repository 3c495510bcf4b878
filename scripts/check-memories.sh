#!/usr/bin/env bash
# Nothing outside src/mem names a memory: a string that is a name of mem/memories.def, anywhere else under src/ but in
# tests, is an offence unless it means something else (below).  Prints each; exit 1 if there is one, 2 if the list of
# memories is unusable.
# Usage: scripts/check-memories.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

names=$(sed -n 's/^MEMORY(\([a-z0-9_]*\))$/\1/p' src/mem/memories.def 2> /dev/null | paste -sd'|')
[ -n "$names" ] || { echo "src/mem/memories.def: no memories" >&2; exit 2; }

# The same words for other things: FILE TEXT-OF-THE-LINE
others='
src/model/config_json.c "model_type", "lamemo"
src/cli/variants.c lam_words_add(w, "lamemo")
src/cli/variants.c lam_words_add(&w, "lamemo")
src/train/tfevents.c WRITER[] = "lamemo"
src/cli/describe.h /* "lamemo";
src/cli/cmd_export.c .shown = "none"
src/convert/tokenizer_json.c : "none")
src/compress/codec.c lam_adapt_names[] =
src/cli/cmd_report.c logs[] = {"none"
src/cli/cmd_report.c "lr",
src/cli/cmd_report.c OPT(log), "none"
'
allowed() { # allowed FILE LINE
    local file text
    while read -r file text; do
        if [ -n "$file" ] && [ "$file" = "$1" ] && [[ "$2" == *"$text"* ]]; then return 0; fi
    done <<< "$others"
    return 1
}

bad=0
while IFS=: read -r file number line; do
    allowed "$file" "$line" && continue
    echo "$file:$number: names a memory: ask what it is like (lam_mem_ops), not what it is called: $line"
    bad=1
done < <(find src -type f \( -name '*.[ch]' -o -name '*.inc' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' \) \
    ! -path 'src/mem/*' ! -name '*_test.c' ! -name '*_fuzz.c' -exec grep -HnE "\"($names)\"" {} +)
[ "$bad" = 0 ] && echo "no memory is named outside src/mem"
exit "$bad"
