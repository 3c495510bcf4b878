# examples_test.sh -- what the documents tell people to type works: every example of lamemo --help, docs/cli.md and
# README.md is read by the program, and those that need no foreign files run, made small by options that come later.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
source=$PWD
export LAMEMO_MODELS="$source/models"

# One command a line, continuation lines joined; what follows a pipe counts.
"$LAMEMO" help --markdown | awk '/^```sh/ { in_block = 1; next } /^```/ { in_block = 0 } in_block' \
    > "$work/documented"
sed -n -e ':a' -e '/\\$/N; s/\\\n *//; ta' -e 's/^ *\$ \(lamemo .*\)/\1/p' README.md > "$work/readme"
"$LAMEMO" --help | sed -n '/^Getting started/,/^$/s/^  //p' > "$work/overview"
[ "$(wc -l < "$work/overview")" -ge 4 ] || fail "where does the overview begin?"
{
    cat "$work/overview" "$work/documented"
    echo "lamemo help # and now another reader begins"
    cat "$work/readme"
} | sed -n 's/.*\(lamemo [a-z]* .*\)/\1/p' > "$work/examples"
[ "$(wc -l < "$work/readme")" -ge 8 ] || fail "where are the commands of README.md?"
run 0 --help
for command in $(sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' "$out"); do
    [ "$command" = help ] || grep -q "^lamemo $command " "$work/examples" || fail "$command has no example"
done

# The places that examples speak of, small.
cd "$work"
ln -s "$source/tests" tests
seq 1 2000 | sed 's/.*/line & of the text, and again line &/' > book.txt
head -c 300 book.txt > story.txt
cp story.txt other.txt
cp story.txt notes.txt
head -n 3 book.txt | tee prompts.txt > sentences.txt
gzip -c book.txt > book.gz
sed 's/.*/{"text": "&"}/' book.txt | gzip -c > posts.jsonl.gz
mkdir books
cp story.txt book.txt books
cp -r books tales
small="--n_layer 1 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8 --mem_len 8
    --batch_size 4 --max_step 12 --log_interval 4 --max_eval_steps 2 --threads 1"
run 0 prepare --out data/bible book.txt
ln -s data/bible corpus
cp book.txt mybook.txt
head -c 200 book.txt > paragraph.txt
mkdir -p build/demo
cp book.txt build/demo/bible
ln -s book.txt bible
mkdir runs
for run in tiny wt103 lamemo xl fast paper; do
    # shellcheck disable=SC2086
    run 0 train --data corpus --memory "$([ $run = xl ] && echo xl || echo lamemo)" \
        --out runs/$run $small
done

of_the_box() {
    case $1 in
    "lamemo train "*) echo --tgt_len 8 --mem_len 8 --batch_size 2 --max_step 1 --max_eval_steps 1 --no-test ;;
    *) echo --tokens 20 ;;
    esac
}

# shorter COMMAND: the options that make an example quick; "no" where it needs what is not here.
shorter() {
    case $1 in
    "lamemo serve "*) echo no ;; # it runs until it is stopped: tests/serve
    *letters.tar* | *--range*) echo no ;;
    *wiki11m*) [ -f "$source/models/wiki11m/config.json" ] && of_the_box "$1" || echo no ;;
    *enwik8.zip* | *wikitext-* | *.pt* | *models/* | "lamemo bench "* | *--presets | *--watch* | "lamemo quan"*) echo no ;;
    *--resume* | "lamemo compare --out cmp") ;;
    # shellcheck disable=SC2086
    "lamemo train "* | "lamemo compare "*) echo $small ;;
    "lamemo prepare "*) echo --replace ;;
    "lamemo eval "*) echo --max-steps 2 --batch-size 2 ;;
    "lamemo analyze "*) echo --segments 2 --no-extrapolate ;;
    *) ;;
    esac
}

ran=0
while read -r line; do
    case $line in
    "lamemo help "*)
        rm -rf cmp
        continue
        ;;
    esac
    words=${line#lamemo }
    # Every value is read before --help is met: a wrong one would end it with 2.
    eval "\"\$LAMEMO\" $words --help" > "$out" 2> "$err" || fail "$line: cannot be read"
    more=$(shorter "$line")
    [ "$more" != no ] || continue
    feed=/dev/null
    case $line in *" -") feed=book.txt ;; esac
    eval "\"\$LAMEMO\" $words $more" > "$out" 2> "$err" < $feed || fail "$line: exit $?"
    ran=$((ran + 1))
done < "$work/examples"
[ $ran -ge 20 ] || fail "only $ran examples ran"

# What README.md shows of them is what they print.
run 0 verify tests/golden/lamemo.safetensors tests/golden/xl_train.safetensors
[ "$(grep -c ' ok$' "$out")" -eq 2 ] || fail "verify says something else"
