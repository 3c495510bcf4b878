# gpu_results_test.sh -- the script for a GPU that is lent for minutes, tried on the CPU: a second there must not be lost
# to a mistake in it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
export LAMEMO TRY=1 SPLIT=90/5/5 EACH=1 CORPORA="$work/corpora" WORK="$work/results" OUT="$work/home"
script=$(dirname "$0")/../../scripts/gpu-results.sh

# results CODE ARG...
results() {
    want=$1
    shift
    code=0
    bash "$script" "$@" > "$out" 2> "$err" || code=$?
    [ "$code" -eq "$want" ] || fail "gpu-results.sh $* exited with $code, not $want: $(tail -3 "$err")"
}

mkdir "$work/corpora"
seq 1 4000 | sed 's/.*/line & of the text, and again line &/' > "$work/corpora/wiki100m.xz" # prepare looks inside

results 0 plan
grep -Eq "^paper-lamemo +wiki27 " "$out" || fail "no plan of paper-lamemo"

# Stopped at once, the same command goes on; what comes home are logs and evaluations.
export RACE="xl mean=lamemo:average=0.5"
export LIMIT=1
results 0 race
says "$out" "race is not complete: give the same command again"
LIMIT=300
results 0 race
says "$out" "race is complete"
tar -xzf "$work/home/race-wiki100m.tar.gz" -C "$work"
for name in xl mean; do
    [ "$(grep -c "\"run\":\"$name-s1111\"" "$work/race-wiki100m/eval.jsonl")" -eq 2 ] || fail "$name: not two evaluations"
    zcat "$work/race-wiki100m/$name-s1111.metrics.jsonl.gz" | grep -q test_loss || fail "$name has no test"
done
zcat "$work/race-wiki100m/mean-s1111.metrics.jsonl.gz" | grep -q '"averaged"' || fail "nothing was averaged"

# A model to be shipped, as trained and as int8; and its weights in parts.
results 0 bundled
[ "$(wc -l < "$WORK/bundled-wiki100m/eval.jsonl")" -eq 4 ] || fail "not four evaluations of the bundled model"
run 0 info --model "$work/home"
rm -r "${work:?}/home"
results 0 take bundled-wiki100m/m26-s1111 1
run 0 info --model "$work/home"

results 2 nothing
says "$err" "there is no part nothing"
