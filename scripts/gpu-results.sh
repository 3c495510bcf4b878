#!/usr/bin/env bash
# The runs of docs/results.md on a GPU that is lent for minutes: each part is one comparison (lamemo compare), is stopped
# after LIMIT seconds with everything saved, and goes on where it was when the same command is given again.
#   gpu-results.sh plan             what each part trains, and how many seconds that takes by the last measured steps
#   gpu-results.sh PART             trains, then packs what comes home into OUT
#   gpu-results.sh take RUN N       N = 1, 2, ...: the N-th four files of RUN's model in DTYPE, each below 14 MB
# Parts (corpus):
#   equal-time (wiki100m)     recipe fast, EACH seconds a model: Transformer-XL, LaMemo, and LaMemo with cheaper memories
#   long-xl, long-lamemo (wiki100m)    recipe fast for 25 minutes, one model each
#   paper-none, paper-xl, paper-lamemo (wiki27)    the paper's recipe, 46,000 steps
#   small-seeds (wiki100m)    preset small, 100,000 steps, three seeds; MODELS names others than the default ones
#   race (wiki100m)           EACH seconds of fast for each operand of RACE, as of lamemo compare: learning rate, dropout, ...
#   bundled (wiki100m)        27.0 million parameters, EACH seconds; then exported as int8 and measured as shipped
#   words (wikitext-2)        five memories, three seeds, several dropouts
# LIMIT=540 seconds, OPTIONS="..." for all models of a part, JOBS at a time; CORPUS=wiki27 runs a part on another corpus.
# WORK keeps corpora and runs, build/results beside a source tree; OUT is packed anew by every call.  CORPORA has the
# corpora as they were published (FILE.xz).  TRY=1: tiny models, few steps, on the CPU, to try the script itself.
# Runs in a bundle made by scripts/gpu-bundle.sh results CORPUS..., or with LAMEMO naming the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }
part=$1 limit=${LIMIT:-540} corpora=${CORPORA:-$here/corpora}
work=${WORK:-$PWD/build/results}
out=${OUT:-$work/out} lamemo=${LAMEMO:-$work/program/lamemo}
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64"
for lib in /opt/*/.venv/lib/python3*/site-packages/nvidia/cu13/lib; do # PyTorch's wheels carry cuBLASLt too
    [ -d "$lib" ] && LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$lib"
done

fail() { echo "gpu-results: $*" >&2; exit 2; }
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# What all runs at the paper's size share.  fast knows no number of steps where the clock ends it: lr and dropout are
# those of the run of 25 minutes in docs/results.md.
base=(--preset enwik8-base --max-eval-steps 60 --log-interval 500)
fast=(--recipe fast --lr 0.001 --dropout 0.05)
device=cuda steps=46000 few=100000 words=3000 long=1500
if [ -n "${TRY:-}" ]; then
    base=(--n-layer 2 --d-model 16 --n-head 2 --d-head 8 --d-inner 16 --tgt-len 16 --batch-size 4
        --max-eval-steps 4 --log-interval 10)
    device=cpu steps=40 few=40 words=20 long=4 EACH=${EACH:-2}
fi

# models ARG...: what the part compares; options: of all of them.
# shellcheck disable=SC2206
models() { models=(${MODELS:-$*}); }
corpus=${CORPUS:-wiki100m} jobs=${JOBS:-1} each=${EACH:-500} options=()
cheaper="from6=lamemo:refresh-from=6 every2=lamemo:refresh-every=2"
[ -z "${TRY:-}" ] || cheaper="from1=lamemo:refresh-from=1 every2=lamemo:refresh-every=2"
choose() {
    local interval=5000 # steps between evaluations, each with a checkpoint
    case $1 in
    equal-time) models "xl lamemo $cheaper"; options=("${base[@]}" "${fast[@]}" --scheduler-time "$each") ;;
    long-*) models "${1#long-}"; options=("${base[@]}" "${fast[@]}" --scheduler-time "$long") ;;
    paper-*)
        corpus=${CORPUS:-wiki27} interval=2000
        models "${1#paper-}"; options=("${base[@]}" --recipe paper --max-step "$steps") ;;
    small-seeds)
        jobs=${JOBS:-4} interval=20000
        models "none xl lamemo compressive infinite no-interpolation no-look-ahead xl-encoding"
        options=(--preset small --recipe paper --lr 0.0005 --warmup-step 2000 --log-interval 500)
        [ -z "${TRY:-}" ] || options=("${base[@]}" --recipe paper)
        options+=(--max-step "$few" --seeds "1,2,3") ;;
    race)
        models "${RACE:-lamemo d10=lamemo:dropout=0.1 lr14=lamemo:lr=0.0014 mean=lamemo:average=0.1}"
        options=("${base[@]}" "${fast[@]}" --scheduler-time "$each") ;;
    bundled)
        each=${EACH:-1380}
        models m26=lamemo
        options=("${base[@]}" --recipe fast --lr 0.0013 --dropout 0.05 --mem-reset 25 --scheduler-time "$each")
        [ -n "${TRY:-}" ] || options+=(--n-layer 14 --d-model 384 --n-head 6 --d-head 64 --d-inner 1536) ;;
    words)
        corpus=wikitext-2 jobs=${JOBS:-5} interval=1000 all=()
        for d in 0.2 0.3 0.4; do
            for m in none xl compressive infinite lamemo; do all+=("$m-d${d#0.}=$m:dropout=$d"); done
        done
        models "${all[*]}"
        options=(--preset wt103-adaptive --n-layer 8 --d-model 256 --n-head 8 --d-head 32 --d-inner 1024
            --cutoffs "4000,12000" --batch-size 32 --log-interval 100)
        [ -z "${TRY:-}" ] || options=("${base[@]}")
        options+=(--recipe fast --max-step "$words" --seeds "1,2,3") ;;
    *) fail "there is no part $1" ;;
    esac
    [ -z "${TRY:-}" ] || interval=20
    # shellcheck disable=SC2206
    options+=(--eval-interval "$interval" --device "$device" ${OPTIONS:-})
}

# Seconds of all models of a part: their own, or steps times milliseconds of one on an H200 (docs/SPEED.md).
needs() {
    local m seconds=0 one
    for m in "${models[@]}"; do
        case $1-$m in
        equal-time-* | race-* | bundled-*) one=$each ;;
        long-*) one=$long ;;
        paper-*-none) one=$((steps * 15 / 1000)) ;;
        paper-*-xl) one=$((steps * 21 / 1000)) ;;
        paper-*-lamemo) one=$((steps * 33 / 1000)) ;;
        small-seeds-*) one=$((few * 3 * 13 / 10000)) ;; # 1.3 ms for LaMemo; nothing is known of several at a time
        words-*) one=$((words * 3 * 45 / 10000)) ;;
        esac
        seconds=$((seconds + one))
    done
    echo "$seconds"
}

if [ "$part" = plan ]; then
    for p in equal-time long-xl long-lamemo paper-none paper-xl paper-lamemo small-seeds race bundled words; do
        (choose $p && printf '%-13s %-11s %6d s  %s\n' $p "$corpus" "$(needs $p)" "${models[*]%%=*}")
    done
    exit
fi

if [ -z "${LAMEMO:-}" ] && ! cmp -s "$here/program.tar.xz" "$work/program.tar.xz"; then
    [ -e "$here/program.tar.xz" ] || fail "no program.tar.xz: run scripts/gpu-bundle.sh results CORPUS"
    mkdir -p "$work/program"
    tar -C "$work/program" -xJf "$here/program.tar.xz" || python3 -m tarfile -e "$here/program.tar.xz" "$work/program"
    cp "$here/program.tar.xz" "$work/"
fi

if [ "$part" = take ]; then # at most four files of 14 MB fit into one way home
    [ $# -eq 3 ] || fail "take RUN N"
    run=$work/$2 dtype=${DTYPE:-bf16}
    [ -d "$run-$dtype" ] || "$lamemo" export -q --model "$run" --out "$run-$dtype" --dtype "$dtype" --max-shard-size 14MB
    mkdir -p "$out"
    cp "$run-$dtype"/*.json "$out/"
    find "$run-$dtype" -name '*.safetensors' | sort | sed -n "$((4 * $3 - 3)),$((4 * $3))p" | xargs -r -I{} cp {} "$out/"
    ls -l "$out"
    exit
fi

choose "$part"
run=$work/$part-$corpus data=$work/data/$corpus
mkdir -p "$work/data"
say "$part on $corpus: about $(needs "$part") s in all; this call ends after $limit s"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null || true

if [ ! -e "$data/corpus.json" ]; then
    how=(--out "$data" --name "$corpus") split=${SPLIT:-90M/5M/5M}
    case $corpus in
    wiki100m) "$lamemo" prepare -q "${how[@]}" --corpus bytes --split "$split" "$corpora/wiki100m.xz" ;;
    wiki27) "$lamemo" prepare -q "${how[@]}" --corpus chars --split "$split" "$corpora/wiki27.xz" ;;
    wikitext-2) "$lamemo" prepare -q --out "$data" --corpus "${WORDS:-wt2}" "$corpora"/wikitext-2.{train,valid,test}.xz ;;
    *) fail "$corpus: there are wiki100m, wiki27 and wikitext-2" ;;
    esac
    say "prepared $corpus"
fi

# SIGTERM: the steps at work are finished and saved.
code=0
timeout -s TERM -k 30 $((limit - SECONDS > 1 ? limit - SECONDS : 1)) "$lamemo" compare --data "$data" --out "$run" \
    --jobs "$jobs" "${options[@]}" "${models[@]}" || code=$?
case $code in
0) state="$part is complete" ;;
124) state="$part is not complete: give the same command again" ;;
*) state="$part FAILED: exit $code" ;;
esac
say "$state"

# Whole splits, of runs that are complete, once each: one JSON object a line.
whole() { # whole NAME MODEL
    local split
    for split in valid test; do
        ! grep -qs "\"run\":\"$1\",\"text\":\"$corpus $split\"" "$run/eval.jsonl" || continue
        [ "$SECONDS" -lt $((limit + 20)) ] || return 0
        "$lamemo" eval -q --json --model "$2" --data "$data" --split "$split" --device "$device" ${TRY:+--max-steps 4} |
            sed 's/^{/{"run":"'"$1"'",/' >> "$run/eval.jsonl"
    done
}
for log in "$run"/*/metrics.jsonl; do
    dir=${log%/metrics.jsonl}
    name=${dir##*/}
    if [ ! -e "$log" ] || ! tail -1 "$log" | grep -q '"test_loss"\|"ended"'; then continue; fi
    case $part in words | small-seeds) ;; *) whole "$name" "$dir" ;; esac # they evaluate whole splits anyway
    if [ "$part" = bundled ]; then
        [ -d "$run/int8" ] || "$lamemo" export -q --model "$dir" --out "$run/int8" --dtype int8 --max-shard-size 14MB
        whole "$name, int8" "$run/int8"
    fi
done

# What comes home: logs as they lie in docs/runs, evaluations, tables; int8 weights of the model to be shipped.
rm -rf "$work/pack"
mkdir -p "$work/pack/$part-$corpus" "$out"
for log in "$run"/*/metrics.jsonl; do
    [ -e "$log" ] || continue
    name=${log%/metrics.jsonl}
    gzip -9nc "$log" > "$work/pack/$part-$corpus/${name##*/}.metrics.jsonl.gz"
done
cp "$run"/eval.jsonl "$run"/compare.* "$work/pack/$part-$corpus/" 2> /dev/null || true
tar -C "$work/pack" -czf "$out/$part-$corpus.tar.gz" .
[ ! -d "$run/int8" ] || cp "$run"/int8/* "$out/"

# How far everything is.
for log in "$run"/*/metrics.jsonl; do
    [ -e "$log" ] || continue
    name=${log%/metrics.jsonl}
    tail -1 "$log" | sed 's/[{}"]//g' | awk -v name="${name##*/}" -F, '{ for (i = 1; i <= NF; i++) { split($i, f, ":")
        if (f[1] == "step") step = f[2]; if (f[1] == "elapsed") seconds = f[2] }
        printf "%-24s step %8d  %7.1f s\n", name, step, seconds }'
done
[ ! -e "$run/eval.jsonl" ] || sed 's/.*"run":"\([^"]*\)","text":"\([^"]*\)".*"value":\([0-9.]*\),"error":\([0-9.]*\).*/\1, \2: \3 +- \4/' "$run/eval.jsonl"
say "$state"
[ "$code" -eq 0 ] || [ "$code" -eq 124 ]
