#!/usr/bin/env bash
# One row of the paper's tables, from the raw file to the table: prepares the corpus, trains the models alike
# and prints dev and test beside what the paper says.  The same command goes on with what was stopped.
#   scripts/reproduce.sh enwik8|text8|wt103|wiki27|wiki100m FILE [OPTION...]
# FILE is the published one (enwik8.zip, text8.zip, wikitext-103-v1.zip) or, for the stand-ins wiki27 (text8's)
# and wiki100m (enwik8's), any text of 100 MB.  Options:
#   --out DIR         where everything is kept            default build/reproduce/CORPUS
#   --models LIST     as of lamemo compare                default "none xl lamemo", wt103: all five memories
#   --recipe NAME     paper or fast                       default paper
#   --steps N         updates of each training            default the preset's, which are the paper's
#   --minutes M       or: so long for each, the schedule following the clock
#   --preset NAME     another size                        default CORPUS's
#   --device NAME     auto, cuda, cpu                     default auto
#   --any-text        FILE is another text: prepare it the same way (to try the script)
# What else follows -- is passed to lamemo compare: -- --seeds 1,2,3 --eval-interval 5000
# LAMEMO names the program; without it build/release/lamemo is built.
set -euo pipefail

fail() {
    echo "reproduce.sh: $*" >&2
    exit 2
}

[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }
corpus=$1 file=$2
shift 2
out='' models='' recipe=paper steps='' minutes='' preset='' device=auto any=''
while [ $# -gt 0 ]; do
    case $1 in
    --any-text) any=1 ;;
    --) shift && break ;;
    --out | --models | --recipe | --steps | --minutes | --preset | --device)
        [ $# -ge 2 ] || fail "$1 needs a value"
        printf -v "${1#--}" '%s' "$2"
        shift ;;
    *) fail "unexpected argument $1" ;;
    esac
    shift
done

# How each corpus is prepared, and the paper's dev and test by model (its Tables 1 and 2).
# A stand-in has the split of the corpus it stands in for.
case $corpus in
enwik8) kind=enwik8 like=enwik8 ;;
text8) kind=text8 like=text8 ;;
wt103) kind=wt103 like=wt103 models=${models:-none xl compressive infinite lamemo} ;;
wiki27) kind=chars like=text8 ;;
wiki100m) kind=bytes like=enwik8 ;;
*) fail "$corpus: there are enwik8, text8, wt103, wiki27 and wiki100m" ;;
esac
case $like in
enwik8) paper='none 1.253 1.240 xl 1.150 1.128 lamemo 1.129 1.107' ;;
text8) paper='none 1.232 1.303 xl 1.172 1.239 lamemo 1.128 1.196' ;;
wt103) paper='none 28.11 29.14 xl 23.42 24.56 compressive - 24.41 infinite - 24.22 lamemo 22.98 23.77' ;;
esac
[ -e "$file" ] || fail "$file: there is no such file"
[ -z "$steps" ] || [ -z "$minutes" ] || fail "--steps and --minutes contradict each other"
out=${out:-build/reproduce/$corpus}

if [ -z "${LAMEMO:-}" ]; then
    root=$(dirname "$0")/..
    cmake -S "$root" --preset release > /dev/null
    cmake --build "$root/build/release" --target lamemo_cli | tail -1
    LAMEMO=$root/build/release/lamemo
fi

if [ ! -e "$out/data/corpus.json" ]; then
    mkdir -p "$out"
    how=(--corpus "$kind" --out "$out/data")
    case $kind in
    chars | bytes) how+=(--name "$corpus" --split "$([ -n "$any" ] && echo 90/5/5 || echo 90M/5M/5M)") ;;
    *) [ -z "$any" ] || how+=(--force) ;;
    esac
    "$LAMEMO" prepare "${how[@]}" "$file"
fi

how=(--preset "${preset:-$like-base}" --recipe "$recipe" --device "$device")
[ -z "$steps" ] || how+=(--max-step "$steps")
if [ -n "$minutes" ]; then
    seconds=$(awk "BEGIN { print 60 * $minutes }")
    how+=(--scheduler-time "$seconds")
fi
# shellcheck disable=SC2086
"$LAMEMO" compare --data "$out/data" --out "$out/compare" "${how[@]}" "$@" ${models:-none xl lamemo}

printf '\n%s, recipe %s, mean over seeds, beside the paper%s:\n' "$corpus" "$recipe" \
    "$([ "$like" = "$corpus" ] && [ -z "$any" ] || echo "'s $like, which is another text")"
awk -F, -v paper="$paper" '
    BEGIN { n = split(paper, p, " "); for (i = 1; i < n; i += 3) said[p[i]] = sprintf("%9s %9s", p[i + 1], p[i + 2]) }
    NR == 1 { printf "%-18s %9s %9s %9s %9s\n", "model", $(NF - 1), $NF, "paper dev", "test"; next }
    $4 == "done" && !runs[$1]++ { order[++models] = $1 }
    $4 == "done" { dev[$1] += $(NF - 1); test[$1] += $NF }
    END {
        for (i = 1; i <= models; i++) {
            m = order[i]
            printf "%-18s %9.4f %9.4f %s\n", m, dev[m] / runs[m], test[m] / runs[m], said[m]
        }
    }' "$out/compare/compare.csv"
