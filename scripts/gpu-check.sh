#!/usr/bin/env bash
# Is the CUDA back-end right and fast on this machine?  One command, one summary at the end.
#   gpu-check.sh [PART...]     parts: bars pdl ops verify train ranks sanitize bench steps growth; without arguments all
# `bars` measures the goals of speed, each beside its bar and its aim, in about two minutes: run it first.
# `pdl` compares decoding with and without programmatic dependent launch (LAMEMO_PDL), by turns.
# Runs in a bundle made by scripts/gpu-bundle.sh, or in the source tree (then it takes build/gpu,
# after scripts/gpu-bundle.sh).  Needs a GPU, its driver and CUDA's libcublasLt; no network.
# LOG=FILE keeps everything that was printed; SECONDS_EACH limits each step benchmark (5);
# FAMILIES="gemm xent" runs those op cases only.  LAMEMO_GRAPHS=0 in the environment starts every operation
# from the host instead of replaying CUDA graphs.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/lamemo" ] || here=$here/../build/gpu-bundle
[ -x "$here/lamemo" ] || { echo "gpu-check: no bundle: run scripts/gpu-bundle.sh" >&2; exit 2; }
cd "$here" || exit 2
log=${LOG:-$(mktemp)}
: > "$log"
each=${SECONDS_EACH:-5}
export LD_LIBRARY_PATH="$here/lib:${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64"
# PyTorch's wheels carry cuBLASLt too.
for lib in /opt/*/.venv/lib/python3*/site-packages/nvidia/cu13/lib; do
    [ -d "$lib" ] && LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$lib"
done
parts=${*:-bars pdl ops verify train ranks sanitize bench steps growth}
summary=()
failed=0

say() { echo "$@" | tee -a "$log"; }
note() { # note PART STATUS TEXT
    summary+=("$(printf '%-22s %-6s %s' "$1" "$2" "$3")")
    [ "$2" = ok ] || [ "$2" = info ] || failed=1
}
wants() { case " $parts " in *" $1 "*) ;; *) false ;; esac }
# run NAME COMMAND...: its output goes to the screen and the log, its status to the summary
run() {
    local name=$1 begin=$SECONDS code=0
    shift
    say "== $name"
    "$@" 2>&1 | tee -a "$log" > "$log.last" || code=$?
    cat "$log.last"
    [ "$code" -eq 0 ] && note "$name" ok "$((SECONDS - begin)) s" ||
        note "$name" FAILED "exit $code, $((SECONDS - begin)) s"
}

say "commit $(cat commit), $(date -u +%Y-%m-%d)"
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1)"

# bench KIND PRESET MEMORY BATCH [OPTION...]: one line of the table
bench() {
    local kind=$1 preset=$2 memory=$3 batch=$4 name
    shift 4
    name="$kind $preset $memory $batch${*:+ $*}"
    run "$name" ./lamemo bench "$kind" --preset "$preset" --memory "$memory" --batch-size "$batch" \
        --device cuda --seconds "$each" "$@"
    table+=("$(awk -v name="$name" '/tokens\/s/ { rate = $2 } $1 == "ms" { ms = $2 }
        $1 == "memory" { peak = $2 " " $3; sub(/ announced/, "", peak) }
        END { printf "%-46s %10.2f ms %12.0f tokens/s  peak %s", name, ms, rate, peak }' "$log.last")")
}
table=()
# bar VALUE AIM UNIT BENCH...: the last line of the table beside its bar; ms and GB at most, tokens/s at least
bar() {
    local bar=$1 aim=$2 unit=$3
    shift 3
    bench "$@"
    table+=("$(awk -v bar="$bar" -v aim="$aim" -v unit="$unit" '
        $1 == unit { x = $2 } unit == "GB" && $1 == "memory" { x = $2 }
        END { met = unit == "tokens/s" ? x >= bar : x <= bar && x > 0
            printf "    %s %s, bar %s, aim %s: %s", x, unit, bar, aim, met ? "met" : "NOT MET" }' "$log.last")")
}
if wants bars; then
    bar 26 22 ms train enwik8-base lamemo 40
    bar 16.5 14 ms train enwik8-base xl 40
    bar 13 11 ms train enwik8-base none 40
    bar 26 20 ms train wt103-adaptive lamemo 64
    bar 31 24 ms train wt103-base lamemo 64
    bar 7.5 6.5 ms eval enwik8-base lamemo 40
    bar 5500 8000 tokens/s generate enwik8-base lamemo 1
    bar 90000 110000 tokens/s generate enwik8-base lamemo 64
    bar 2500 4000 tokens/s generate wt103-base lamemo 1
    bar 8.5 7 GB train enwik8-base lamemo 40
fi
# Twice each, by turns: the machine may change meanwhile.  Then the traces, which decode too, with it.
if wants pdl; then
    for on in 0 1 0 1; do
        for line in "enwik8-base lamemo 1" "enwik8-base lamemo 64" "wt103-base lamemo 1"; do
            export LAMEMO_PDL=$on
            # shellcheck disable=SC2086
            bench generate $line
            table+=("    LAMEMO_PDL=$on")
        done
    done
    export LAMEMO_PDL=1
    run "verify bf16, PDL" ./lamemo verify --device cuda --precision bf16 traces/*.safetensors
    run "attn_next, put_rows, gemm, PDL" sh -c \
        './opcases cuda attn_next && ./opcases cuda put_rows && ./opcases cuda gemm'
    unset LAMEMO_PDL
fi

if wants ops; then # both at once: most of the time goes into the reference on the CPU
    for family in ${FAMILIES:-all}; do
        [ "$family" = all ] && family=
        LAM_OPCASES_FULL_PREC=1 ./opcases cuda $family > "$log.float32" 2>&1 &
        first=$!
        LAM_OPCASES_FULL_PREC=0 ./opcases cuda $family > "$log.bf16" 2>&1 &
        second=$!
        wait "$first"
        one=$?
        wait "$second"
        two=$?
        run "ops float32 $family" sh -c 'cat "$0"; exit "$1"' "$log.float32" "$one"
        run "ops bf16 $family" sh -c 'cat "$0"; exit "$1"' "$log.bf16" "$two"
    done
fi
# Losses, gradients, state, decoding and training of small models.  In bf16 the limit is the error of ref16, the
# reference rounded to bf16 after every operation, times 2 (gradients 3).
if wants verify; then
    run "verify float32" ./lamemo verify --device cuda --precision float32 traces/*.safetensors
    run "verify bf16" ./lamemo verify --device cuda --precision bf16 traces/*.safetensors
fi
# Two hundred steps of a tiny model, with dropout: float32 must stay within 1 % of the CPU's losses
# (means of ten steps), and one seed must give one result.
if wants train; then
    dir=$(mktemp -d)
    run "train prepare" ./lamemo prepare text.txt --out "$dir/data"
    train() { # train NAME OPTION...
        local name=$1
        shift
        ./lamemo train --data "$dir/data" --preset tiny --memory lamemo --out "$dir/$name" \
            --max-step 200 --log-interval 1 --eval-interval 0 --no-test "$@" > "$dir/$name.log" 2>&1
        sed -n 's/.*"step": *\([0-9]*\),.*"loss": *\([0-9.]*\),.*"grad_norm": *\([0-9.]*\).*/\1 \2 \3/p' \
            "$dir/$name/metrics.jsonl" > "$dir/$name.losses"
    }
    train cpu --recipe paper --device cpu &
    train float32 --recipe paper --device cuda --precision float32
    train one --recipe paper --device cuda --precision bf16
    train two --recipe paper --device cuda --precision bf16
    LAMEMO_GRAPHS=0 train three --recipe paper --device cuda --precision bf16
    wait
    paste -d ' ' "$dir/cpu.losses" "$dir/float32.losses" > "$dir/both"
    run "train float32 = cpu" awk '{ one += $2; two += $5; steps += $1 == $4 }
        NR % 10 == 0 { off = two / one - 1; off = off < 0 ? -off : off
            worst = off > worst ? off : worst; one = two = 0 }
        END { printf "%d steps, the worst mean of ten is off by %.2e\n", steps, worst
            exit !(steps == 200 && NR == 200 && worst < 0.01) }' "$dir/both"
    same() { [ -s "$1" ] && cmp "$1" "$2"; } # two empty logs are no proof
    run "train bf16 twice" same "$dir/one.losses" "$dir/two.losses"
    run "train without graphs" same "$dir/one.losses" "$dir/three.losses"
    say "step, loss and norm at the end: cpu $(tail -1 "$dir/cpu.losses")," \
        "float32 $(tail -1 "$dir/float32.losses"), bf16 $(tail -1 "$dir/one.losses")"
    # The fast recipe (Muon), in bf16: one seed, one result, and at the end within 2 % of the CPU's losses.
    train muon-cpu --recipe fast --warmup-step 20 --device cpu &
    train muon-one --recipe fast --warmup-step 20 --device cuda
    train muon-two --recipe fast --warmup-step 20 --device cuda
    wait
    run "train muon twice" same "$dir/muon-one.losses" "$dir/muon-two.losses"
    run "train muon = cpu" awk 'NR == FNR { one[FNR] = $2; next } FNR > 150 { a += one[FNR]; b += $2 }
        END { printf "mean loss of the last 50 steps: cpu %.4f, cuda %.4f\n", a / 50, b / 50
            exit !(FNR == 200 && b / a > 0.98 && b / a < 1.02) }' "$dir/muon-cpu.losses" "$dir/muon-one.losses"
    rm -rf "$dir"
fi
# Several processes on the one card, staged through the host, and one process by NCCL: the same bytes as one process.
if wants ranks; then
    dir=$(mktemp -d)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run "ranks prepare" ./lamemo prepare text.txt --out "$dir/data"
    share() { # share NAME PROCESSES OPTION...: what it says of the exchange, and whether it ended well
        local name=$1 n=$2 code=0 start=()
        shift 2
        [ "$n" -eq 1 ] || start=(mpirun -n "$n" --oversubscribe --bind-to none)
        "${start[@]}" ./lamemo train --data "$dir/data" --preset tiny --memory lamemo --device cuda --leaves 4 \
            --max-step 40 --eval-interval 0 --no-test --out "$dir/$name" "$@" > "$dir/$name.log" 2>&1 || code=$?
        grep '^exchange' "$dir/$name.log"
        [ "$code" -eq 0 ] || tail -5 "$dir/$name.log"
        return "$code"
    }
    alike() { # alike A B
        local file
        for file in model optimizer memory.00000 memory.00003; do
            cmp "$dir/$1/last/$file.safetensors" "$dir/$2/last/$file.safetensors" || return 1
        done
    }
    for recipe in paper fast; do
        run "ranks $recipe 1" share "$recipe-1" 1 --recipe "$recipe"
        if [ -n "$(ldconfig -p | grep libnccl.so.2)$(ls /usr/local/cuda/lib64/libnccl.so.2 2> /dev/null)" ]; then
            for how in exact fast; do
                export LAMEMO_COMM=nccl
                run "ranks $recipe NCCL $how" share "$recipe-nccl-$how" 1 --recipe "$recipe" --reduce "$how"
                unset LAMEMO_COMM
                run "ranks $recipe NCCL $how =" alike "$recipe-1" "$recipe-nccl-$how"
            done
        else
            note "ranks NCCL" info "libnccl.so.2 is not installed"
        fi
        if command -v mpirun > /dev/null && [ -e lamemo-mpi.so ]; then
            for n in 2 4; do
                for zero in 0 1; do
                    run "ranks $recipe $n zero $zero" share "$recipe-$n-$zero" "$n" --recipe "$recipe" --zero "$zero"
                    run "ranks $recipe $n zero $zero =" alike "$recipe-1" "$recipe-$n-$zero"
                done
            done
        else
            note "ranks MPI" info "mpirun or lamemo-mpi.so is not there"
        fi
    done
    rm -rf "$dir"
fi
if wants sanitize; then
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
    if [ -n "$sanitizer" ]; then
        for family in ${SANITIZE:-gnorm ortho_begin interp_bwd gemm_inner embed_bwd put_rows attn_next}; do
            run "memcheck $family" "$sanitizer" --error-exitcode 9 --log-file "$log.san" \
                ./opcases cuda "$family"
        done
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
if [ "${#table[@]}" -gt 0 ]; then
    say ""
    for line in "${table[@]}"; do say "$line"; done
fi

say ""
say "summary"
for line in "${summary[@]}"; do say "  $line"; done
rm -f "$log.last" "$log.san" "$log.float32" "$log.bf16"
[ -n "${LOG:-}" ] || rm -f "$log"
exit $failed
