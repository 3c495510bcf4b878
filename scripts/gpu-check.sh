#!/usr/bin/env bash
# Is the CUDA back-end right and fast on this machine?  One command, one summary at the end.
#   gpu-check.sh [PART...]     without arguments all, in this order; four groups that take up to ten minutes each:
#     first    bars exact verify train       speed beside its bars; exact arithmetic; traces; training twice and without
#                                            graphs
#     second   pdl ops ranks                 LAMEMO_PDL; op cases; processes and NCCL
#     third    sanitize bench steps growth   memcheck and racecheck of changed kernels; rates of operations; steps of
#                                            all models; time against length
#     fourth   serve                         64 streams of `lamemo serve` beside `bench generate --batch-size 64`
# A part that fails does not stop the next.  Exit status 1: something failed; bars that are not met are no failure.
# Runs in a bundle made by scripts/gpu-bundle.sh, or in the source tree (then it takes build/gpu-bundle).  Needs a GPU,
# its driver and CUDA's libcublasLt; no network.
# LIMIT=570 stops after so many seconds: what is left is skipped, and the summary says so.  MOST=150 limits each command.
# LOG=FILE keeps everything that was printed; SECONDS_EACH limits each step benchmark (3);
# FAMILIES="gemm xent" runs those op cases only, SANITIZE those under compute-sanitizer.  LAMEMO_GRAPHS=0 in the
# environment starts every operation from the host instead of replaying CUDA graphs.
# STEPS and SHAPE (200, "--preset tiny") change what is trained, where a GPU is only emulated.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/lamemo" ] || here=$here/../build/gpu-bundle
[ -x "$here/lamemo" ] || { echo "gpu-check: no bundle: run scripts/gpu-bundle.sh" >&2; exit 2; }
log=${LOG:-$(mktemp)}
case $log in /*) ;; *) log=$PWD/$log ;; esac
cd "$here" || exit 2
: > "$log" || exit 2
each=${SECONDS_EACH:-3} limit=${LIMIT:-1000000} most=${MOST:-150}
steps=${STEPS:-200} shape=${SHAPE:---preset tiny}
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64"
# PyTorch's wheels carry cuBLASLt too.
for lib in /opt/*/.venv/lib/python3*/site-packages/nvidia/cu13/lib; do
    [ -d "$lib" ] && LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$lib"
done
parts=" ${*:-first second third fourth} "
parts=${parts/ first / bars exact verify train }
parts=${parts/ second / pdl ops ranks }
parts=${parts/ third / sanitize bench steps growth }
parts=${parts/ fourth / serve }
for part in $parts; do
    case $part in
    bars | exact | verify | train | pdl | ops | ranks | sanitize | bench | steps | growth | serve) ;;
    *) echo "gpu-check: there is no part $part" >&2; exit 2 ;;
    esac
done
work=$(mktemp -d)
summary=() states=() table=()
good=0 failed=0 skipped=0 bars=0 bars_met=0

say() { echo "$@" | tee -a "$log"; }
note() { # note PART STATUS TEXT
    summary+=("$(printf '%-30s %-7s %s' "$1" "$2" "$3")")
    states+=("$2")
    case $2 in
    ok) good=$((good + 1)) ;;
    FAILED) failed=$((failed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
    esac
}
finish() {
    local line state i
    trap - INT TERM
    if [ "${#table[@]}" -gt 0 ]; then
        say ""
        for line in "${table[@]}"; do say "$line"; done
    fi
    say ""
    say "summary"
    for state in ok info skipped FAILED; do # failures last: a log may be cut at its front
        for i in "${!summary[@]}"; do
            [ "${states[i]}" != "$state" ] || say "  ${summary[i]}"
        done
    done
    say "$good ok, $failed failed, $skipped skipped; $bars_met of $bars bars met; $SECONDS s"
    rm -rf "$work"
    [ -n "${LOG:-}" ] || rm -f "$log"
    exit $((failed > 0))
}
trap 'note "stopped by a signal" FAILED "after $SECONDS s"; finish' INT TERM
wants() { case " $parts " in *" $1 "*) ;; *) false ;; esac }
# within COMMAND...: ends it after $most seconds, or when the time is over
within() {
    local left=$((limit - SECONDS))
    [ "$left" -lt "$most" ] || left=$most
    timeout -k 5 "$((left > 0 ? left : 1))" "$@"
}
# run NAME COMMAND...: its output goes to the screen and the log, its status to the summary; false where it fails.
# Functions call within() themselves.
run() {
    local name=$1 begin=$SECONDS code=0 how=within
    shift
    : > "$work/last"
    if [ "$SECONDS" -ge "$limit" ]; then
        note "$name" skipped "no time is left"
        return 1
    fi
    [ "$(type -t "$1")" != function ] || how=
    say "== $name"
    $how "$@" 2>&1 | tee -a "$log" "$work/last" || code=$?
    case $code in
    0) note "$name" ok "$((SECONDS - begin)) s" ;;
    124 | 137)
        [ "$SECONDS" -lt "$limit" ] && note "$name" FAILED "not done after $((SECONDS - begin)) s" ||
            note "$name" skipped "ended by LIMIT after $((SECONDS - begin)) s" ;;
    *) note "$name" FAILED "exit $code, $((SECONDS - begin)) s" ;;
    esac
    [ "$code" -eq 0 ]
}
same() { [ -s "$1" ] && cmp "$1" "$2"; } # two empty files are no proof
now() { date +%s.%N; }

say "commit $(cat commit), $(date -u +%Y-%m-%d), parts$parts"
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1)"

# bench KIND PRESET MEMORY BATCH [OPTION...]: one line of the table
bench() {
    local kind=$1 preset=$2 memory=$3 batch=$4 name
    shift 4
    name="$kind $preset $memory $batch${*:+ $*}"
    run "$name" ./lamemo bench "$kind" --preset "$preset" --memory "$memory" --batch-size "$batch" \
        --device cuda --seconds "$each" "$@" || return 1
    table+=("$(awk -v name="$name" '/tokens\/s/ { rate = $2 } $1 == "ms" { ms = $2 }
        $1 == "memory" { peak = $2 " " $3; sub(/ planned/, "", peak) }
        END { printf "%-46s %10.2f ms %12.0f tokens/s  peak %s", name, ms, rate, peak }' "$work/last")")
}
# judge VALUE BAR AIM UNIT: a line of the table; ms and GB at most, others at least
judge() {
    local met
    met=$(awk -v x="$1" -v bar="$2" -v unit="$4" 'BEGIN {
        print (unit == "ms" || unit == "GB" ? x <= bar && x > 0 : x + 0 >= bar) ? "met" : "NOT MET" }')
    bars=$((bars + 1))
    [ "$met" != met ] || bars_met=$((bars_met + 1))
    table+=("    $1 $4, bar $2, aim $3: $met")
}
# also BAR AIM UNIT: another number of the benchmark that was run last
also() {
    judge "$(awk -v unit="$3" '$1 == unit { x = $2 } unit == "GB" && $1 == "memory" { x = $3 == "MB" ? $2 / 1000 : $2 }
        END { print x + 0 }' "$work/last")" "$@"
}
# bar BAR AIM UNIT BENCH...
bar() {
    if bench "${@:4}"; then also "$1" "$2" "$3"; else bars=$((bars + 1)); fi
}
if wants bars; then
    bar 26 22 ms train enwik8-base lamemo 40 && also 8.5 7 GB
    bar 16.5 14 ms train enwik8-base xl 40
    bar 13 11 ms train enwik8-base none 40
    bar 26 20 ms train wt103-adaptive lamemo 64
    bar 31 24 ms train wt103-base lamemo 64
    bar 7.5 6.5 ms eval enwik8-base lamemo 40
    bar 5500 8000 tokens/s generate enwik8-base lamemo 1
    bar 90000 110000 tokens/s generate enwik8-base lamemo 64
    bar 2500 4000 tokens/s generate wt103-base lamemo 1
fi

# Exact arithmetic: known answers, the same bytes as the CPU in whole programs, and how fast archives are.
if wants exact; then
    dir=$work/exact model=models/wiki11m
    mkdir -p "$dir"
    head -c "${EXACT_BYTES:-32768}" text.txt > "$dir/in"
    head -c 1500 text.txt > "$dir/short"
    run "exact answers" env LAM_TEST_DEVICE=cuda CK_FORK=no ./infer_exact_test
    run "exact operations" env LAM_TEST_DEVICE=cuda CK_FORK=no ./ops_exact_test
    for trace in lamemo lamemo_prenorm lamemo_adaptive_div2 lamemo_train xl xl_adaptive_demb xl_samelength \
        none_learned none_absolute; do
        exact+=("traces/$trace.safetensors")
    done
    run "exact traces" ./lamemo verify --device cuda --numerics exact "${exact[@]}"
    says() { within ./lamemo "${@:2}" --numerics exact > "$dir/$1"; }
    alike() { says cpu "$@" --device cpu && says cuda "$@" --device cuda && same "$dir/cpu" "$dir/cuda"; }
    run "exact score = cpu" alike score -m $model --json --per-token "@$dir/short"
    run "exact generate = cpu" alike generate -m $model "The history of " -n 200 --seed 5
    ungraphed() { LAMEMO_GRAPHS=0 says plain "$@" --device cuda && same "$dir/cuda" "$dir/plain"; }
    run "exact without graphs" ungraphed generate -m $model "The history of " -n 200 --seed 5
    # archive NAME DEVICE MODEL STREAMS FILE
    archive() { within ./lamemo compress -q -c --device "$2" -m "$3" --streams "$4" "$5" > "$dir/$1.lmz"; }
    run "exact compress cpu" archive cpu cpu $model 8 "$dir/in"
    run "exact compress cuda" archive cuda cuda $model 8 "$dir/in" &&
        run "exact archive = cpu" same "$dir/cpu.lmz" "$dir/cuda.lmz"
    # restore NAME MODEL FILE: decodes, and says how fast
    restore() {
        local begin
        begin=$(now)
        within ./lamemo decompress -q -c --device cuda -m "$2" "$dir/$1.lmz" > "$dir/back" || return 1
        awk -v n="$(stat -c %s "$dir/back")" -v t="$(now)" -v b="$begin" \
            'BEGIN { printf "decoding %.1f kB/s, %d bytes in %.1f s, start and end included\n", n / (t - b) / 1000, n, t - b }'
        same "$3" "$dir/back"
    }
    run "exact decompress" restore cuda $model "$dir/in"
    # A model of the size of the bar, trained just so far that it beats storing.
    base="--preset ${BASE:-enwik8-base} --memory lamemo --batch-size 22 --max-step ${BASE_STEPS:-80} --recipe fast"
    head -c "${BASE_BYTES:-262144}" text.txt > "$dir/part"
    run "exact base prepare" ./lamemo prepare text.txt --out "$dir/data"
    # shellcheck disable=SC2086
    run "exact base train" ./lamemo train --data "$dir/data" --out "$dir/base" --device cuda $base --eval-interval 0 \
        --no-test && run "exact base compress" archive base cuda "$dir/base" 64 "$dir/part" &&
        run "exact base decompress" restore base "$dir/base" "$dir/part" &&
        table+=("decompress ${BASE:-enwik8-base} lamemo, 64 streams") &&
        judge "$(awk '$1 == "decoding" { print $2 }' "$work/last")" 40 40 kB/s
fi

# Losses, gradients, state, decoding and training of small models.  In bf16 the limit is the error of ref16, the
# reference rounded to bf16 after every operation, times 2 (gradients 3).
if wants verify; then
    run "verify float32" ./lamemo verify --device cuda --precision float32 traces/*.safetensors
    run "verify bf16" ./lamemo verify --device cuda --precision bf16 traces/*.safetensors
fi

# Two hundred steps of a tiny model, with dropout: float32 must stay within 1 % of the CPU's losses
# (means of ten steps), and one seed must give one result: the bytes of the model.
if wants train; then
    dir=$work/train
    mkdir -p "$dir"
    run "train prepare" ./lamemo prepare text.txt --out "$dir/data"
    run "train prepare lines" ./lamemo prepare --documents lines text.txt --out "$dir/lines"
    train() { # train NAME OPTION...
        local name=$1
        shift
        # shellcheck disable=SC2086
        within ./lamemo train --data "$dir/data" $shape --memory lamemo --out "$dir/$name" \
            --max-step "$steps" --log-interval 1 --eval-interval 0 --no-test "$@" > "$dir/$name.log" 2>&1 ||
            { tail -3 "$dir/$name.log"; return 1; }
        sed -n 's/.*"step": *\([0-9]*\),.*"loss": *\([0-9.]*\),.*"grad_norm": *\([0-9.]*\).*/\1 \2 \3/p' \
            "$dir/$name/metrics.jsonl" > "$dir/$name.losses"
    }
    near() { # near CPU CUDA: losses, as means of ten steps
        paste -d ' ' "$dir/$1.losses" "$dir/$2.losses" | awk -v want="$steps" '{ one += $2; two += $5; steps += $1 == $4 }
            NR % 10 == 0 || NR == want { off = two / one - 1; off = off < 0 ? -off : off
                worst = off > worst ? off : worst; one = two = 0 }
            END { printf "%d steps, the worst mean of ten is off by %.2e\n", steps, worst
                exit !(steps == want && NR == want && worst < 0.01) }'
    }
    equal() { # equal A B: the bits of the model and of all losses
        same "$dir/$1.losses" "$dir/$2.losses" && same "$dir/$1/last/model.safetensors" "$dir/$2/last/model.safetensors"
    }
    train cpu --recipe paper --device cpu > "$dir/cpu.out" 2>&1 &
    cpus=$!
    run "train float32" train float32 --recipe paper --device cuda --precision float32
    run "train bf16" train one --recipe paper --device cuda --precision bf16
    run "train bf16 again" train two --recipe paper --device cuda --precision bf16
    LAMEMO_GRAPHS=0 run "train bf16, no graphs" train three --recipe paper --device cuda --precision bf16
    wait "$cpus"
    run "train float32 = cpu" near cpu float32
    run "train bf16 twice" equal one two
    run "train without graphs" equal one three
    say "step, loss and norm at the end: cpu $(tail -1 "$dir/cpu.losses")," \
        "float32 $(tail -1 "$dir/float32.losses"), bf16 $(tail -1 "$dir/one.losses")"
    # A memory that begins anew with every document: streams of different age in one batch.
    train lines-cpu --data "$dir/lines" --mem-reset document --recipe paper --device cpu > "$dir/cpu.out" 2>&1 &
    cpus=$!
    run "train documents float32" train lines-32 --data "$dir/lines" --mem-reset document --recipe paper --device cuda \
        --precision float32
    for name in lines-one lines-two; do
        run "train documents bf16" train $name --data "$dir/lines" --mem-reset document --recipe paper --device cuda
    done
    wait "$cpus"
    run "train documents = cpu" near lines-cpu lines-32
    run "train documents bf16 = cpu" near lines-cpu lines-one
    run "train documents twice" equal lines-one lines-two
    # The fast recipe (Muon), in bf16: one seed, one result, and at the end within 2 % of the CPU's losses.
    train muon-cpu --recipe fast --warmup-step 20 --device cpu > "$dir/cpu.out" 2>&1 &
    cpus=$!
    run "train muon" train muon-one --recipe fast --warmup-step 20 --device cuda
    run "train muon again" train muon-two --recipe fast --warmup-step 20 --device cuda
    wait "$cpus"
    run "train muon twice" equal muon-one muon-two
    close() {
        awk -v want="$steps" 'NR == FNR { one[FNR] = $2; next } FNR > want * 3 / 4 { a += one[FNR]; b += $2; n++ }
            END { printf "mean loss of the last %d steps: cpu %.4f, cuda %.4f\n", n, a / n, b / n
                exit !(FNR == want && b / a > 0.98 && b / a < 1.02) }' "$dir/muon-cpu.losses" "$dir/muon-one.losses"
    }
    run "train muon = cpu" close
fi

# Twice each, by turns: the machine may change meanwhile.  Then what must not change with it: text, traces, op cases.
if wants pdl; then
    for on in 0 1 0 1; do
        for line in "enwik8-base lamemo 1" "enwik8-base lamemo 64" "wt103-base lamemo 1"; do
            export LAMEMO_PDL=$on
            # shellcheck disable=SC2086
            bench generate $line && table+=("    LAMEMO_PDL=$on")
        done
    done
    writes() { # writes NAME PDL GRAPHS
        LAMEMO_PDL=$2 LAMEMO_GRAPHS=$3 within ./lamemo generate -m models/wiki11m --device cuda "The history of " \
            -n "${PDL_TOKENS:-1500}" --seed 3 > "$work/$1"
    }
    run "generate" writes plain 0 1
    run "generate, PDL" writes pdl 1 1
    run "generate, no graphs" writes ungraphed 0 0
    run "generate, PDL, no graphs" writes pdl-ungraphed 1 0
    for name in pdl ungraphed pdl-ungraphed; do run "generate $name =" same "$work/plain" "$work/$name"; done
    export LAMEMO_PDL=1
    run "verify bf16, PDL" ./lamemo verify --device cuda --precision bf16 traces/*.safetensors
    run "op cases, PDL" ./opcases cuda attn_next put_rows gemm
    unset LAMEMO_PDL
fi

if wants ops; then # both at once: most of the time goes into the reference on the CPU
    for family in ${FAMILIES:-all}; do
        [ "$family" = all ] && family=
        [ "$SECONDS" -lt "$limit" ] || { note "ops $family" skipped "no time is left"; continue; }
        LAM_OPCASES_FULL_PREC=1 within ./opcases cuda $family > "$work/float32" 2>&1 &
        first=$!
        LAM_OPCASES_FULL_PREC=0 within ./opcases cuda $family > "$work/bf16" 2>&1 &
        second=$!
        begin=$SECONDS
        wait "$first"
        one=$?
        wait "$second"
        two=$?
        say "op cases: $((SECONDS - begin)) s"
        run "ops float32 $family" sh -c 'cat "$0"; exit "$1"' "$work/float32" "$one"
        run "ops bf16 $family" sh -c 'cat "$0"; exit "$1"' "$work/bf16" "$two"
    done
fi

# Several processes on the one card, staged through the host, and one process by NCCL: the same bytes as one process,
# with the sums beside the backward pass and after it, with CUDA graphs and without.  Then how long a step takes.
if wants ranks; then
    dir=$work/ranks
    mkdir -p "$dir"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run "ranks prepare" ./lamemo prepare text.txt --out "$dir/data"
    share() { # share NAME PROCESSES OPTION...: what it says of the exchange, and whether it ended well
        local name=$1 n=$2 code=0 start=()
        shift 2
        [ "$n" -eq 1 ] || start=(mpirun -n "$n" --oversubscribe --bind-to none)
        # shellcheck disable=SC2086
        within "${start[@]}" ./lamemo train --data "$dir/data" $shape --memory lamemo --device cuda --leaves 4 \
            --max-step "$((steps < 40 ? steps : 40))" --eval-interval 0 --no-test --out "$dir/$name" "$@" \
            > "$dir/$name.log" 2>&1 || code=$?
        grep '^exchange' "$dir/$name.log"
        [ "$code" -eq 0 ] || tail -5 "$dir/$name.log"
        return "$code"
    }
    as_one() { # as_one A B
        local file
        for file in model optimizer memory.00000 memory.00003; do
            same "$dir/$1/last/$file.safetensors" "$dir/$2/last/$file.safetensors" || return 1
        done
    }
    as_before() { # as_before RECIPE NAME PROCESSES OPTION...: the same bytes as one process without an exchange
        local recipe=$1 name=$1-$2
        run "ranks $recipe $2" share "$name" "$3" --recipe "$recipe" "${@:4}" &&
            run "ranks $recipe $2 =" as_one "$recipe-1" "$name"
    }
    # pace NAME PROCESSES OPTION...: the last third of 30 steps, and where the time of each rank went
    pace() {
        local name=$1 n=$2 start=()
        shift 2
        [ "$n" -eq 1 ] || start=(mpirun -n "$n" --oversubscribe --bind-to none)
        rm -rf "$dir/pace"
        run "$name" within "${start[@]}" ./lamemo train --data "$dir/data" --preset "${BASE:-enwik8-base}" --memory lamemo \
            --batch-size 40 --recipe paper --device cuda --leaves "$n" --max-step 30 --log-interval 10 --eval-interval 0 \
            --no-test -v --out "$dir/pace" "$@" || return 1
        table+=("$(sed -n 's/^run: .* steps of \([0-9]*\) x \([0-9]*\) tokens.*/\1 \2/p' "$work/last" | awk -v name="$name" \
            -v rate="$(sed -n 's/.*"step":30,.*"tokens_per_second":\([0-9.]*\),.*/\1/p' "$dir/pace/metrics.jsonl")" \
            '{ printf "%-46s %10.2f ms %12.0f tokens/s", name, (rate > 0 ? 1000 * $1 * $2 / rate : 0), rate }')")
        while read -r line; do table+=("    $line"); done < <(sed -n 's/^debug: \(rank .* compute\)/\1/p' "$work/last")
    }
    nccl= mpi=
    [ -z "$(ldconfig -p | grep libnccl.so.2)$(ls /usr/local/cuda/lib64/libnccl.so.2 2> /dev/null)${NCCL_THERE:-}" ] ||
        nccl=yes
    command -v mpirun > /dev/null && [ -e lamemo-mpi.so ] && mpi=yes
    [ -n "$nccl" ] || note "ranks NCCL" info "libnccl.so.2 is not installed"
    [ -n "$mpi" ] || note "ranks MPI" info "mpirun or lamemo-mpi.so is not there"
    for recipe in paper fast; do
        run "ranks $recipe 1" share "$recipe-1" 1 --recipe "$recipe"
        for how in ${nccl:+exact fast}; do
            LAMEMO_COMM=nccl as_before "$recipe" "NCCL $how" 1 --reduce "$how"
            LAMEMO_COMM=nccl as_before "$recipe" "NCCL $how, apart" 1 --reduce "$how" --no-overlap
        done
        for n in ${mpi:+2 4}; do
            for zero in 0 1; do
                as_before "$recipe" "$n zero $zero" "$n" --zero "$zero"
            done
            as_before "$recipe" "$n apart" "$n" --no-overlap
        done
        [ -z "$nccl" ] || LAMEMO_GRAPHS=0 LAMEMO_COMM=nccl as_before "$recipe" "NCCL fast, no graphs" 1 --reduce fast
        [ -z "$mpi" ] || LAMEMO_GRAPHS=0 as_before "$recipe" "2, no graphs" 2
    done
    for turn in 1 2; do # by turns
        pace "step alone, turn $turn" 1
        for apart in "" --no-overlap; do
            # shellcheck disable=SC2086
            [ -z "$nccl" ] || LAMEMO_COMM=nccl pace "step NCCL fast ${apart:-overlap}, turn $turn" 1 --reduce fast $apart
            # shellcheck disable=SC2086
            [ -z "$mpi" ] || pace "step 2 processes ${apart:-overlap}, turn $turn" 2 $apart
        done
    done
fi

# The kernels that changed since the last run on a card, and whole programs, whose kernels run as graphs.
if wants sanitize; then
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
    if [ -n "$sanitizer" ]; then
        all=$most most=$((most < 60 ? most : 60)) # enough for all but a family with large cases
        under() { # under TOOL NAME COMMAND...
            local tool=$1 name=$2
            shift 2
            run "$tool $name" "$sanitizer" --tool "$tool" --error-exitcode 9 --log-file "$work/san" "$@" ||
                { grep -A 3 -m 16 '= *Error' "$work/san"; tail -20 "$work/san"; } | tee -a "$log"
        }
        export LAM_TEST_DEVICE=cuda CK_FORK=no
        ./lamemo prepare text.txt --out "$work/san-data" > /dev/null
        whole="train --data $work/san-data $shape --memory lamemo --device cuda --eval-interval 0 --no-test --max-step 4"
        under memcheck "exact answers" ./infer_exact_test
        most=150 under racecheck "exact answers" ./infer_exact_test # needs more than a minute
        under memcheck "exact operations" ./ops_exact_test
        most=150 under racecheck "exact operations" ./ops_exact_test
        # shellcheck disable=SC2086
        under memcheck train ./lamemo $whole --out "$work/san-train"
        under memcheck generate ./lamemo generate -m models/wiki11m --device cuda "The " -n 20
        for family in ${SANITIZE:-put_rows attn_next xent attn_fwd attn_bwd gemm gemm_inner embed_bwd}; do
            under memcheck "$family" ./opcases cuda "$family"
            under racecheck "$family" ./opcases cuda "$family"
        done
        unset LAM_TEST_DEVICE CK_FORK
        most=$all
    else
        note sanitize info "compute-sanitizer is not installed"
    fi
fi

if wants bench; then
    run "op rates" ./gpu_bench cuda
fi
if wants steps; then
    for line in "train enwik8-base lamemo 40" "train enwik8-base xl 40" "train enwik8-base none 40" \
        "train enwik8-base compressive 40" "train enwik8-base infinite 40" "train text8-base lamemo 40" \
        "train wt103-adaptive lamemo 64" "train wt103-base lamemo 64" "train wt103-base xl 64" \
        "train small lamemo 8" "train tiny lamemo 16" "eval enwik8-base lamemo 40" \
        "eval wt103-base lamemo 64" "generate enwik8-base lamemo 1" "generate enwik8-base xl 1" \
        "generate enwik8-base none 1" "generate enwik8-base lamemo 64" "generate wt103-base lamemo 1"; do
        # shellcheck disable=SC2086
        bench $line
    done
fi
# Is the time of a step affine in the memory, and that of a token in the segment?
if wants growth; then
    for length in 512 1024 2048 4096; do
        bench train enwik8-base lamemo 10 --mem-len "$length"
    done
    for length in 256 512 1024 2048; do
        bench train enwik8-base lamemo 10 --tgt-len "$length"
    done
    for length in 256 512 1024 2048; do
        bench train enwik8-base lamemo 10 --tgt-len "$length" --mem-len "$length"
    done
fi
# The server's streams against a plain batch of as many, by turns; the bar is a share of what that reaches.
if wants serve; then
    dir=$work/serve base=${BASE:-enwik8-base} streams=${SERVE_STREAMS:-64}
    mkdir -p "$dir"
    run "serve prepare" ./lamemo prepare text.txt --out "$dir/data"
    load() { # load OPTION...: tokens/s of a server with these options
        local server code=1
        ./lamemo serve --model "$dir/model" --device cuda --slots "$streams" --port 0 "$@" > "$dir/said" 2>&1 &
        server=$!
        for ((i = 0; i < 600; i++)); do
            if ! kill -0 "$server" 2> /dev/null || grep -q '^ready' "$dir/said"; then break; fi
            sleep 0.1
        done
        within ./serve_load -p "$(sed -n 's/^listening.* port \([0-9]*\).*/\1/p' "$dir/said")" -P "$server" \
            -c "$streams" -w "${SERVE_WARM:-3}" -s "${SERVE_SECONDS:-15}" && code=0
        kill "$server"
        wait "$server" || code=1
        [ "$code" -eq 0 ] || tail -5 "$dir/said"
        return "$code"
    }
    if run "serve model" ./lamemo train --data "$dir/data" --out "$dir/model" --device cuda --preset "$base" \
        --memory lamemo --batch-size 22 --max-step 2 --eval-interval 0 --no-test; then
        for options in "" "" "--fixed-batch"; do
            bench generate "$base" lamemo "$streams"
            plain=$(awk '/tokens\/s/ { x = $2 } END { print x + 0 }' "$work/last")
            # shellcheck disable=SC2086
            if run "serve $base${options:+ $options}" load $options; then
                table+=("serve $base lamemo, $streams streams${options:+, $options}")
                judge "$(awk '/tokens\/s/ { print $1; exit }' "$work/last")" \
                    "$(awk -v x="$plain" 'BEGIN { printf "%.0f", 0.9 * x }')" "$plain" tokens/s
            fi
        done
    fi
fi
finish
