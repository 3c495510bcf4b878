# convert_test.sh -- models in and out: export in types and shards, import of folders and files.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
tools=$(dirname "$LAMEMO")/tests

"$tools/make_model" "$work/model" lamemo 3
run 0 generate --model "$work/model" --prompt "once" -n 60 --json --logprobs
cp "$out" "$work/text"

# Float32 in shards is the same model; narrower types are another, and load.
run 0 export --model "$work/model" --out "$work/shards" --max-shard-size 8kB --json
says "$out" '"dtype":"f32"'
[ -e "$work/shards/model.safetensors.index.json" ] || fail "no index"
[ ! -e "$work/shards/model.safetensors" ] || fail "shards and a whole file"
run 0 generate --model "$work/shards" --prompt "once" -n 60 --json --logprobs
cmp "$out" "$work/text" || fail "shards generate another text"
for type in bf16 f16; do
    run 0 export --model "$work/model" --out "$work/$type" --dtype $type
    says "$out" "of $type in 1 file"
    run 0 score --model "$work/$type" "once upon a time"
done
[ "$(wc -c < "$work/bf16/model.safetensors")" -lt "$(wc -c < "$work/model/model.safetensors")" ] ||
    fail "bf16 is not smaller"

# int8 is a quarter, runs as it is, and equals what --weights makes of the whole model.
run 0 export --model "$work/model" --out "$work/int8" --dtype int8 --max-shard-size 8kB
says "$out" "of int8 in 2 files"
run 0 generate --model "$work/int8" --prompt "once" -n 60 --json --logprobs
cp "$out" "$work/text8"
run 0 generate --model "$work/model" --weights int8 --prompt "once" -n 60 --json --logprobs
cmp "$out" "$work/text8" || fail "--weights int8 generates another text than the folder"
run 0 score --model "$work/int8" --weights float32 --cache bf16 "once upon a time"
run 0 score --model "$work/int8" --device ref "once upon a time"
run 0 import "$work/int8" --out "$work/widened" # its scales are used, not left out
! grep -q "left out" "$out" || fail "what was left out of int8?"
run 0 score --model "$work/widened" "once upon a time"
run 2 score --model "$work/model" --weights int4 "once"
says "$err" "int4"
run 2 score --model "$work/model" --cache int8 "once"

# Folders, files and shards come in again, bit for bit.
run 0 import "$work/shards" --out "$work/again"
says "$out" "memory lamemo, attn_type 3, 8,704 parameters in 29 tensors, vocabulary of 256"
cmp "$work/again/model.safetensors" "$work/model/model.safetensors" || fail "weights changed"
cmp "$work/again/config.json" "$work/model/config.json" || fail "configuration changed"
cmp "$work/again/vocab.json" "$work/model/vocab.json" || fail "vocabulary changed"
run 0 import "$work/model/model.safetensors" --out "$work/file" --json
says "$out" '"memory":"lamemo"'
cmp "$work/file/model.safetensors" "$work/model/model.safetensors" || fail "weights changed"

# Weights alone need lengths, and say so; without a vocabulary there is a warning.
mkdir "$work/alone"
cp "$work/model/model.safetensors" "$work/alone/weights"
run 2 import "$work/alone/weights" --out "$work/from"
says "$err" "does not say its tgt_len; give --tgt-len"
run 0 import "$work/alone/weights" --out "$work/from" --tgt-len 12 --mem-len 9
says "$err" "no vocabulary was found"
cmp "$work/from/model.safetensors" "$work/model/model.safetensors" || fail "weights changed"
run 0 import "$work/alone/weights" --out "$work/from" --tgt-len 12 --mem-len 9 --replace \
    --vocab "$work/model/vocab.json"
says "$out" "vocabulary of 256"

# What is in the way stays.
run 1 import "$work/model" --out "$work/from"
says "$err" "--replace replaces it"
run 1 export --model "$work/model" --out "$work"
says "$err" "is not a model folder"
echo mine > "$work/from/diary"
run 1 import "$work/model" --out "$work/from" --replace
says "$err" "holds diary, which is no part of a model"
mkfifo "$work/pipe"
run 1 import "$work/pipe" --out "$work/x"
says "$err" "pipe: not a regular file"
run 1 import "$work/model" --out "$work/text/below"
says "$err" "text: cannot make the folder: Not a directory"
run 1 export --model "$work/model" --out /proc/never
says "$err" "export: /proc/never: cannot make the folder"
run 1 import "$work/nothing" --out "$work/x"
says "$err" "nothing"
run 1 import "$work/text" --out "$work/x"
says "$err" "text: neither a PyTorch file nor safetensors"
printf 'PK and no more' > "$work/cut.pt"
run 1 import "$work/cut.pt" --out "$work/x"
says "$err" "not a whole zip archive"
printf '\200\002\212' > "$work/old.pt"
run 1 import "$work/old.pt" --out "$work/x"
says "$err" "old.pt: saved by PyTorch before 1.6"
mkdir -p "$work/run/best"
run 1 import "$work/run" --out "$work/x"
says "$err" "run: a run of lamemo's own"
run 1 import "$work/alone" --out "$work/x"
says "$err" "holds neither"
[ ! -e "$work/x" ] || fail "a failed import left something"

# Stopping: 143 after SIGTERM, and either the whole folder is there or nothing.  Many small files, to take a while.
for delay in 0.02 0.05 0.1; do
    rm -rf "$work/stopped"
    "$LAMEMO" export --model "$work/model" --out "$work/stopped" --max-shard-size 1 > "$out" 2> "$err" &
    pid=$!
    sleep $delay
    kill $pid 2> "$work/.kill" || true # it may be done
    code=0
    wait $pid || code=$?
    case $code in
    0) [ -e "$work/stopped/config.json" ] || fail "a whole export left nothing" ;;
    143) [ ! -e "$work/stopped" ] || fail "a stopped export left a folder" ;;
    *) fail "SIGTERM gave exit $code" ;;
    esac
done
# shellcheck disable=SC2144
[ ! -e "$work"/*.tmp ] || fail "a stopped export left a temporary folder"

for size in 0 -1 5XB GB ''; do
    run 2 export --model "$work/model" --out "$work/y" --max-shard-size "$size"
    says "$err" "is not a size such as 500M"
done
run 2 export --model "$work/model"
says "$err" "--out is missing"
run 2 import "$work/model"
says "$err" "--out is missing"

# For Hugging Face: the same weights, a module of PyTorch, and still a model folder (tests/torch runs the module).
run 0 export --model "$work/model" --hf "$work/hf"
cmp "$work/hf/model.safetensors" "$work/model/model.safetensors" || fail "weights changed"
cmp "$work/hf/modeling_lamemo.py" python/hf/modeling_lamemo.py || fail "another module than in the tree"
says "$work/hf/config.json" '"AutoModelForCausalLM": "modeling_lamemo.LamemoForCausalLM"'
says "$work/hf/tokenizer.json" '"ByteLevel"'
run 0 generate --model "$work/hf" --prompt "once" -n 60 --json --logprobs
cmp "$out" "$work/text" || fail "the folder for Hugging Face generates another text"
run 0 import "$work/hf" --out "$work/from-hf"
cmp "$work/from-hf/config.json" "$work/model/config.json" || fail "configuration changed on the way back"
run 0 export --model "$work/model" --hf "$work/hf" --dtype f16 --replace
says "$work/hf/config.json" '"torch_dtype": "float16"'
run 1 export --model "$work/model" --hf "$work/hf8" --dtype int8
says "$err" "--dtype f32, bf16 or f16"
run 2 export --model "$work/model" --hf "$work/hf8" --out "$work/hf9"
for memory in compressive infinite; do
    "$tools/make_model" "$work/other-$memory" $memory 3
    run 1 export --model "$work/other-$memory" --hf "$work/hf8"
    says "$err" "has no memory $memory; it has none, xl, lamemo"
done
cp -r "$work/model" "$work/upper"
sed -i 's/"refresh_from": 0/"refresh_from": 1/' "$work/upper/config.json"
run 1 export --model "$work/upper" --hf "$work/hf8"
says "$err" "has no refresh_from, which this model uses"
sed -i 's/"refresh_from": 1/"refresh_from": 0/; s/"refresh_every": 1/"refresh_every": 2/' "$work/upper/config.json"
run 1 export --model "$work/upper" --hf "$work/hf8"
says "$err" "has no refresh_every, which this model uses"
[ ! -e "$work/hf8" ] || fail "something was written all the same"
