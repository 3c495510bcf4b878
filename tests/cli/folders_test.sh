# folders_test.sh -- what is not lamemo's own is neither replaced nor removed nor followed, whatever --out names.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # many fsyncs; no claim is about them
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
cd "$work"

seq 1 500 | sed 's/.*/line & of the text, and again line &/' > text
run 0 prepare --out corpus text
small="--data corpus --n_layer 1 --n_head 2 --d_model 8 --d_head 4 --d_inner 8 --tgt_len 4 --mem_len 4
    --batch_size 2 --max_step 4 --log_interval 2 --eval_interval 2 --max_eval_steps 1 --no-test --threads 1"

# shellcheck disable=SC2086
train() { # train CODE ARG...
    want=$1
    shift
    run "$want" train $small "$@"
}

# state FOLDER: every name in it, its kind and content.
state() { (cd "$1" && find . -printf '%p %y %l\n' | sort && find . -type f -exec md5sum {} + | sort); }

# untouched FOLDER COMMAND...: the command is refused and changes nothing there.
untouched() {
    state "$1" > before
    folder=$1
    shift
    "$@"
    state "$folder" > after
    cmp before after || fail "$folder is not what it was: $*"
}

train 0 --out run

# ---- train: things of others under the names of a run's own ----
foreign() { # foreign NAME TEXT MESSAGE: a file in the run folder, or in its place, is named and kept
    rm -rf other
    mkdir -p "other/$(dirname "$1")"
    printf '%s' "$2" > "other/$1"
    untouched other train 1 --out other
    says "$err" "$3"
    cp -r run mixed
    mkdir -p "mixed/$(dirname "$1")"
    printf '%s' "$2" > "mixed/$1"
    untouched mixed train 1 --out mixed --overwrite
    says "$err" "$3"
    rm -r mixed
}
foreign train.log "Dear diary," "train.log: lamemo did not write this file: move it away"
foreign metrics.jsonl '{"step": 1}' "metrics.jsonl: lamemo did not write this file"
foreign events.out.tfevents.1700000000.host.1.0 "curves" "events.out.tfevents.1700000000.host.1.0"
foreign best/cat.jpg "miaow" "best: holds cat.jpg, which is no part of a model: move it away"
foreign last/cat.jpg "miaow" "last: holds cat.jpg, which is no part of a checkpoint"
foreign best.new/cat.jpg "miaow" "best.new: holds cat.jpg"
foreign last.old/cat.jpg "miaow" "last.old: holds cat.jpg"
rm -rf other
mkdir -p other/photos
untouched other train 1 --out other
says "$err" "other: holds photos and is not a run folder: name a new or an empty one"
train 1 --out /
says "$err" "/: the root of all folders: name one in it"
train 1 --out ///usr/..
says "$err" "the root of all folders"
HOME=$work/other
untouched other train 1 --out ~
# What is a run's is resumed and replaced, and the rest stays; so is a folder with nothing in it yet.
echo mine > run/notes.txt
run 0 train --out run --resume --no-test --max_step 6
train 0 --out run --overwrite
[ "$(cat run/notes.txt)" = mine ] || fail "a note is gone"
[ "$(find run -name 'events.*' | wc -l)" -eq 1 ] || fail "old events are left"
mkdir fresh
train 0 --out fresh > fresh/console.txt

# ---- links ----
for name in train.log metrics.jsonl "$(basename "$(ls run/events.*)")"; do
    cp -r run linked
    echo precious > precious
    ln -sf ../precious "linked/$name"
    sed -i 's/"\(metrics\|log\|events\)": [0-9]*/"\1": 0/' linked/last/training_state.json
    rm linked/last/CRC32SUMS
    for how in "--resume --max_step 6" --overwrite; do
        # shellcheck disable=SC2086
        untouched linked train 1 --out linked $how
        says "$err" "linked/$name: a link, which is not followed: remove it"
    done
    [ "$(cat precious)" = precious ] || fail "$name was followed"
    rm -r linked
done
for part in last best; do
    cp -r run linked
    mv "linked/$part" elsewhere
    ln -s ../elsewhere "linked/$part"
    untouched elsewhere train 1 --out linked --overwrite
    says "$err" "linked/$part: a link, which is not followed"
    rm -r linked elsewhere
done
cp -r run named
sed -i 's|"events_name": "[^"]*"|"events_name": "../precious"|' named/last/training_state.json
rm named/last/CRC32SUMS
run 1 train --out named --resume --max_step 6
says "$err" "training_state.json: files.events_name '../precious' is no event file's"
[ "$(cat precious)" = precious ] || fail "a name from a file was followed"

# ---- the other commands ----
mkdir hf
echo '{"model_type": "gpt2"}' > hf/config.json
echo weights > hf/model.safetensors
untouched hf run 1 export --model run --out hf --replace
says "$err" "hf: exists and is not a model folder"
untouched hf run 1 import run/best --out hf --replace
mkdir named-alike
echo '{}' > named-alike/corpus.json
untouched named-alike run 1 prepare --out named-alike --replace text
says "$err" "named-alike: exists and is not a corpus folder"
mkdir -p pages/figures
echo "<html>mine" > pages/mine.html
untouched pages run 1 report run --out pages/mine.html
says "$err" "pages/mine.html: there is a file already that lamemo did not write"
echo data > pages/figures/train.csv
untouched pages run 1 report run --out pages
says "$err" "pages/figures: holds train.csv and is not a report folder"
run 1 report run --out /
says "$err" "/: the root of all folders"
run 0 report run --out run # beside the run; and once more, over its own
run 0 report run --out run
[ -s run/figures/train.csv ] || fail "no figures"
run 0 train --out run --resume --no-test --max_step 8
untouched pages run 1 analyze -m run --data corpus --out pages
says "$err" " and is not a report folder: name a new or an empty one"
mkdir tables
echo "| mine |" > tables/compare.md
untouched tables run 1 compare --data corpus --out tables xl
says "$err" "tables: holds compare.md and is not a comparison folder"
run 1 compare --data corpus --out / xl
says "$err" "/: the root of all folders"

# ---- places that only the end of the work would find ----
mkdir here
(
    cd here
    for command in "prepare ../text" "export --model ../run" "import ../run/best"; do
        # shellcheck disable=SC2086
        run 1 $command --out .
        says "$err" ".: the working folder cannot be replaced: name one in it"
    done
)
[ "$(find here | wc -l)" -eq 1 ] || fail "something is left in here"
ln -s nothing dangling
for command in "prepare text" "export --model run" "import run/best"; do
    # shellcheck disable=SC2086
    run 1 $command --out dangling
    says "$err" "dangling: a link to nothing: remove it"
done
train 1 --out dangling
says "$err" "dangling: a link to nothing: remove it"

# Several at once into one new folder: the first one wins, the others say so, and nothing is mixed or left.
for i in 1 2 3 4; do
    sed "s/text/text $i/" text > "text$i"
    { "$LAMEMO" prepare -q --out shared "text$i" 2> "err$i" && echo "$i" >> winner || :; } &
done
wait
[ "$(wc -l < winner)" -eq 1 ] || fail "not one of four: $(cat winner)"
for i in 1 2 3 4; do
    [ "$i" -eq "$(cat winner)" ] ||
        grep -q "shared: there is a corpus already; --replace replaces it" "err$i" || fail "$i: $(cat "err$i")"
done
run 0 prepare -q --out alone "text$(cat winner)"
for file in train.bin vocab.json corpus.json; do
    cmp "alone/$file" "shared/$file" || fail "a mixture of several"
done
[ "$(find . -maxdepth 1 -name 'shared*' | wc -l)" -eq 1 ] || fail "something is left beside the folder"
