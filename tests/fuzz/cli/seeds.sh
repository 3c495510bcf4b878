#!/usr/bin/env bash
# Small good files for the fuzzer of the program, and the commands that read them: seeds.sh BUILD FOLDER
# FOLDER/CLASS has in/, commands and perhaps writes (main.c says what they are); every model is a few kilobytes.
set -euo pipefail
tests=$(cd "$1/tests" && pwd)
golden=$(cd "$(dirname "$0")/../../golden" && pwd)
mkdir -p "$2"
cd "$2"
export LAMEMO_FUZZ_CHILD=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
log=$PWD/.log
lamemo() { "$tests/cli_fuzz" "$@" > "$log" 2>&1 || { cat "$log"; echo "seeds: lamemo $* failed" >&2; exit 1; }; }
class() { # class NAME, with the commands on standard input
    mkdir -p "$1/in"
    cat > "$1/commands"
}

# What the classes are made of, in .parts.
rm -rf .parts ./*
mkdir .parts
seq 400 | sed 's/.*/In the beginning God created the heaven, and the earth was without form: &./' > .parts/text
head -c 3000 .parts/text > .parts/short
lamemo prepare --out .parts/corpus .parts/text
lamemo prepare --corpus words --min-count 1 --out .parts/words .parts/text
lamemo prepare --corpus bpe --vocab-size 300 --out .parts/bpe .parts/text
shape="--preset tiny --n-layer 1 --n-head 1 --d-model 8 --d-head 8 --d-inner 8 --tgt-len 8 --mem-len 8 --batch-size 2
    --eval-batch-size 2 --max-eval-steps 2 --log-interval 1"
train() { # train MEMORY FOLDER OPTION...: two steps
    local memory=$1 folder=$2
    shift 2
    # shellcheck disable=SC2086
    lamemo train --memory "$memory" --out "$folder" $shape --max-step 2 --eval-interval 1 "$@"
}
for memory in none xl compressive infinite lamemo; do
    options=()
    case $memory in none) options=(--mem-len 0) ;; infinite) options=(--ltm-samples 8 --ltm-basis 4) ;; esac
    train $memory .parts/$memory --data .parts/corpus "${options[@]}"
done
train xl .parts/pairs --data .parts/bpe
train lamemo .parts/adaptive --data .parts/words --adaptive --cutoffs 20,200 --div-val 2
model=.parts/lamemo/best
lamemo export -m $model --out .parts/int8 --dtype int8
lamemo export -m $model --out .parts/bf16 --dtype bf16
lamemo export -m $model --out .parts/shards --max-shard-size 3kB
lamemo session --save $model .parts/snapshot

class model << 'END'
score -m in/m --json hello
generate -m in/m -n 12 --json --logprobs hello
generate -m in/m -n 9 --samples 2 --temp 0.5 --top-k 4 --repeat-penalty 1.5 hello
info -m in/m --json
eval -m in/m --data in/text --batch-size 2 --max-steps 3 --json
export -m in/m --out out/m --dtype bf16 --json
import in/m --out out/m --json
END
cp -r $model model/in/m && cp .parts/short model/in/text

class narrow << 'END'
score -m in/m --json hello
generate -m in/m -n 12 --json --logprobs hello
export -m in/m --out out/m --dtype int8 --json
score -m in/b --json hello
generate -m in/b -n 5 --weights int8 hello
END
cp -r .parts/int8 narrow/in/m && cp -r .parts/bf16 narrow/in/b

class shards << 'END'
score -m in/m --json hello
export -m in/m --out out/m --max-shard-size 2kB --json
import in/m --out out/m --json
END
cp -r .parts/shards shards/in/m

for memory in none xl compressive infinite adaptive; do
    class $memory << 'END'
score -m in/m --json hello
generate -m in/m -n 20 --json hello
eval -m in/m --data in/text --batch-size 2 --tgt-len 5 --mem-len 3,7 --max-steps 3 --json
info -m in/m --json
END
    cp -r .parts/$memory/best $memory/in/m && cp .parts/short $memory/in/text
done
sed -i 's/ --mem-len 3,7//' none/commands

class bpe << 'END'
score -m in/m --json hello
generate -m in/m -n 20 --json --logprobs hello
eval -m in/m --data in/text --batch-size 2 --max-steps 3 --json
eval -m in/m --data in/c --batch-size 1 --max-steps 3 --json
prepare --vocab-from in/m --out out/c --json in/text
prepare --vocab-from in/c/vocab.json --separate --out out/c --json in/text
prepare --corpus bpe --vocab-size 300 --out out/c --json in/text
END
cp -r .parts/pairs/best bpe/in/m && cp -r .parts/bpe bpe/in/c && cp .parts/short bpe/in/text

class corpus << 'END'
eval -m in/m --data in/c --split test --batch-size 2 --max-steps 2 --json
eval -m in/m --data in/c --split train --batch-size 1 --max-steps 2 --json
train --data in/c --out out/run --preset tiny --n-layer 1 --n-head 1 --d-model 8 --d-head 8 --d-inner 8 --tgt-len 8 --mem-len 8 --batch-size 2 --max-step 1 --max-eval-steps 1 --eval-batch-size 2 --json
info --data in/c --json
prepare --vocab-from in/c --out out/c --json in/text
train --init-from in/m --data in/c --out out/run --tgt-len 8 --batch-size 2 --max-step 1 --max-eval-steps 1 --eval-batch-size 2 --json
END
cp -r .parts/corpus corpus/in/c && cp -r $model corpus/in/m && cp .parts/short corpus/in/text

class texts << 'END'
prepare --out out/c --json in/t/a.txt in/t/b.txt.gz
prepare --corpus chars --out out/c --json in/t
prepare --corpus words --min-count 1 --out out/c --json in/t/c.txt.xz
prepare --corpus words --lower --max-vocab 20 --out out/c --json in/t/d.zip
prepare --out out/c --json in/t/e.zst
prepare --corpus text8 --force --out out/c --json in/t/a.txt
END
mkdir texts/in/t
cp .parts/short texts/in/t/a.txt
gzip -nc .parts/short > texts/in/t/b.txt.gz
xz -c .parts/short > texts/in/t/c.txt.xz
# zip, by hand: what gzip has between its header and trailer is the deflated file
little() { printf "\\x$(printf %02x $(($1 & 255)))\\x$(printf %02x $(($1 >> 8)))\\0\\0"; }
head -c -8 texts/in/t/b.txt.gz | tail -c +11 > .parts/deflated
{
    printf 'PK\3\4\24\0\0\0\10\0\0\0\0\0'
    tail -c 8 texts/in/t/b.txt.gz | head -c 4
    little "$(wc -c < .parts/deflated)"
    little "$(wc -c < .parts/short)"
    printf '\1\0\0\0x'
    cat .parts/deflated
    printf 'PK\1\2'
} > texts/in/t/d.zip
if command -v zstd > /dev/null; then
    zstd -qc .parts/short > texts/in/t/e.zst
else
    sed -i /zst/d texts/commands
fi

class vocab << 'END'
prepare --vocab-from in/vocab.json --out out/c --json in/text
prepare --vocab-from in/words.json --out out/c --json in/text
prepare --vocab-from in/symbols --out out/c --json in/text
import in/w.safetensors --config in/config.json --vocab in/vocab.json --out out/m --json
END
cp .parts/corpus/vocab.json vocab/in/vocab.json && cp .parts/words/vocab.json vocab/in/words.json
printf '%s\n' '<eos>' '<unk>' the and In God earth > vocab/in/symbols
cp $model/model.safetensors vocab/in/w.safetensors && cp $model/config.json vocab/in/config.json
cp .parts/short vocab/in/text

class tokenizers << 'END'
prepare --vocab-from in/tokenizer.json --out out/c --json in/text
prepare --vocab-from in/ranks.tiktoken --pattern gpt2 --out out/c --json in/text
export -m in/tokenizer.json --tokenizer out/again.json
import in/w.safetensors --config in/config.json --vocab in/tokenizer.json --out out/m --json
END
lamemo export -m .parts/bpe --tokenizer tokenizers/in/tokenizer.json
for byte in $(seq 0 255); do
    printf '%s %d\n' "$(printf "\\x$(printf %02x "$byte")" | base64)" "$byte"
done > tokenizers/in/ranks.tiktoken
cp .parts/pairs/best/model.safetensors tokenizers/in/w.safetensors
cp .parts/pairs/best/config.json tokenizers/in/config.json && cp .parts/short tokenizers/in/text

torch() { "$tests/make_checkpoint" "$@" > "$log" 2>&1 || { cat "$log"; exit 1; }; }
class torch << 'END'
import in/l.pt --out out/m --json
import in/m.pt --out out/m --json
import in/s.pt --tgt-len 8 --mem-len 8 --vocab in/symbols --out out/m --json
prepare --vocab-from in/l.pt --corpus words --out out/c --json in/text
END
torch torch/in/l.pt "$golden/lamemo.safetensors" lamemo
torch torch/in/m.pt "$golden/xl.safetensors" module
torch torch/in/s.pt "$golden/xl.safetensors" state
{ printf '%s\n' '<eos>' '<unk>'; seq 2 18 | sed s/^/word/; } > torch/in/symbols
cp .parts/short torch/in/text

class traces << 'END'
verify in/t.safetensors --json
verify --device cpu in/t.safetensors in/u.safetensors --json
END
cp "$golden/lamemo_train.safetensors" traces/in/t.safetensors
cp "$golden/compressive.safetensors" traces/in/u.safetensors

class resume << 'END'
train --out in/run --resume --max-step 3 --json
train --data in/c --out in/run --resume --max-step 4 --eval-interval 2 --json
END
cp -r .parts/corpus resume/in/c
(cd resume && train lamemo in/run --data in/c) # the run remembers in/c
printf 'in/run\n' > resume/writes

class runs << 'END'
report in/a in/b --json
report in/a in/b --plot train
report in/a/metrics.jsonl in/b --out out/page.html --title x
report in/a in/b --out out/page --over time --at 1,2
info -m in/a --json
score -m in/b hello
END
cp -r .parts/lamemo runs/in/a && cp -r .parts/compressive runs/in/b

class compare << 'END'
compare --out in/cmp --json
compare --out in/cmp
compare --data in/c --out in/cmp --seeds 1,2 none
report in/cmp/xl-s1 in/cmp/none-s1 --json
END
cp -r .parts/corpus compare/in/c
# shellcheck disable=SC2086
cd compare && lamemo compare --data in/c --out in/cmp $shape --max-step 1 --eval-interval 1 --seeds 1 xl none && cd ..
printf 'in/cmp\n' > compare/writes

class analyze << 'END'
analyze -m in/m,in/n --data in/c --out out/a --json --no-extrapolate --segments 2 --tokens 40 --batch-size 1 --passage 40 --story 8 --prompt-tokens 8
END
cp -r $model analyze/in/m && cp -r .parts/xl/best analyze/in/n && cp -r .parts/corpus analyze/in/c

class snapshots << 'END'
session in/m in/s
END
cp -r $model snapshots/in/m && cp .parts/snapshot snapshots/in/s
