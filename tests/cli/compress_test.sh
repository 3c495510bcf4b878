# compress_test.sh -- compress and decompress: files come back with mode and time, nothing is lost on the way.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
"$(dirname "$LAMEMO")/tests/make_model" "$work/toy" lamemo 3
"$(dirname "$LAMEMO")/tests/make_model" "$work/other" lamemo 4
cd "$work"
seq 1 900 > text
cp text original

# A file becomes FILE.lmz and back, with mode and time; the source goes.
chmod 640 text
touch -d '2001-02-03 04:05:06' text
run 0 compress -m toy text
[ ! -e text ] || fail "the source is still there"
says "$err" "with the model"
[ "$(stat -c '%a %Y' text.lmz)" = "640 $(date -d '2001-02-03 04:05:06' +%s)" ] || fail "mode or time of the archive"
run 0 decompress -m toy text.lmz
[ ! -e text.lmz ] || fail "the archive is still there"
cmp text original || fail "another text came back"
[ "$(stat -c '%a %Y' text)" = "640 $(date -d '2001-02-03 04:05:06' +%s)" ] || fail "mode or time of the text"

# -k keeps, an existing result is refused, -f replaces it; -o and -c keep the source.
run 0 compress -k -m toy text
run 1 compress -k -m toy text
says "$err" "text.lmz: exists already; -f replaces it"
run 0 compress -kf -m toy text
run 0 compress -m toy -o named text
cmp text.lmz named || fail "the same text, another archive"
run 0 decompress -c -m toy named
cmp "$out" original || fail "-c"
run 1 decompress -m toy named
says "$err" "named: has no suffix .lmz"
run 1 compress -m toy text.lmz
says "$err" "text.lmz: has the suffix .lmz already"
[ -e text ] && [ -e text.lmz ] || fail "a source was removed"
run 2 compress -c -o x -m toy text
run 2 compress -o x -m toy text original

# Pipes; several files; an empty one; one byte; bytes that are no text.
"$LAMEMO" compress -q -m toy < text | "$LAMEMO" decompress -q -m toy | cmp - original || fail "a pipe"
: > empty
printf x > one
head -c 3000 /dev/urandom > noise
for f in empty one noise; do cp $f $f.was; done
run 0 compress -m toy empty one noise
run 0 decompress -m toy empty.lmz one.lmz noise.lmz
for f in empty one noise; do cmp $f $f.was || fail "$f"; done
run 1 compress -m toy missing one
says "$err" "missing: cannot open"
says "$err" "1 of 2 files failed"
[ -e one.lmz ] || fail "a file after a missing one"

# Links and hard links are refused where they would be removed.
ln -s original link
ln original second
run 1 compress -m toy link
says "$err" "link: is a link"
run 1 compress -m toy second
says "$err" "second: has 2 names"
run 0 compress -k -m toy second
run 1 compress -m toy .
says "$err" ".: is a folder"

# -t and -l; several blocks; ranges.
seq 1 3000 > long
run 0 compress -k -m toy --block 4096 --streams 2 long
run 0 decompress -t -m toy long.lmz
[ ! -s "$out" ] || fail "-t writes"
run 0 compress -t -m toy long.lmz
run 0 compress -l -v long.lmz text.lmz
says "$out" "block 4: bytes 12288 to"
run 0 decompress -l --json long.lmz
says "$out" '"bytes":13893'
says "$out" '"complete":true'
run 0 decompress --range 4090+20 -m toy long.lmz
tail -c +4091 long | head -c 20 | cmp - "$out" || fail "--range"
run 2 decompress --range 13000+5000 -m toy long.lmz
says "$err" "the archive holds 13893 bytes"
run 2 decompress --range 5 -m toy long.lmz
says "$err" "is not OFFSET+LENGTH"

# Another model is refused by name, before anything is written; a name in an archive is not a path.
run 1 decompress -k -f -m other long.lmz
says "$err" "made with model toy"
says "$err" "the model given is other"
cmp long long || fail "the old file was touched"
run 1 decompress -k -f long.lmz
says "$err" "made with model toy, which does not come with lamemo"

# Damage names the block; without --salvage nothing is left behind, with it the other blocks come out.
cp long.lmz bad.lmz
printf '\377\377\377' | dd of=bad.lmz bs=1 seek=$(($(stat -c %s bad.lmz) / 2)) conv=notrunc 2> /dev/null
run 1 decompress -m toy bad.lmz
says "$err" "bad.lmz: block"
[ ! -e bad ] && [ -e bad.lmz ] || fail "something was left, or the archive was removed"
[ -z "$(find . -name '*.tmp')" ] || fail "a temporary file was left"
run 1 decompress -t -m toy bad.lmz
says "$err" "1 of 4 blocks are damaged"
run 1 decompress --salvage -m toy bad.lmz
says "$err" "the archive is kept"
[ -s bad ] && [ -e bad.lmz ] || fail "--salvage"
[ "$(stat -c %s bad)" -ge 9000 ] || fail "--salvage lost more than a block"
head -c 300 long.lmz > cut.lmz
run 1 decompress -m toy cut.lmz
says "$err" "cut.lmz: block 1: the archive ends in it"
run 1 decompress -m toy -o x text
says "$err" "text: not an LMZ1 archive"
cp text n.lmz
run 1 decompress -m toy n.lmz
says "$err" "n.lmz: not an LMZ1 archive"

# Byte pairs give every file back, too; a vocabulary of words does not.
cp original book
for kind in bpe words; do
    run 0 prepare --out corpus-$kind --corpus $kind --max-vocab 300 book
    run 0 train --recipe paper --data corpus-$kind --out run-$kind --n_layer 1 --n_head 1 --d_model 8 --d_head 8 \
        --d_inner 8 --tgt_len 8 --mem_len 8 --batch_size 2 --max_step 1 --eval_interval 1 --max_eval_steps 1 \
        --threads 1 --no-test
done
head -c 1500 noise > mixed
head -c 1500 text >> mixed
for adapt in none mix; do
    run 0 compress -q -c --adapt $adapt -m run-bpe mixed
    "$LAMEMO" decompress -q -m run-bpe < "$out" | cmp - mixed || fail "byte pairs, $adapt"
    run 0 compress -q -c --adapt $adapt -m run-bpe original
    [ "$(stat -c %s "$out")" -lt 3500 ] || fail "byte pairs do not compress"
    "$LAMEMO" decompress -q -m run-bpe < "$out" | cmp - original || fail "byte pairs, $adapt"
done
run 1 compress -k -m run-words original
says "$err" "a vocabulary of words does not give every file back byte for byte"

# The same bytes for every number of threads, device and instruction set.
head -c 2000 text > small
run 0 compress -c -T 1 -m toy small
cp "$out" first
for how in "-T 2" "-T 7" "--device ref"; do
    # shellcheck disable=SC2086
    run 0 compress -c $how -m toy small
    cmp "$out" first || fail "$how: another archive"
done
for level in x86-64-v2 x86-64-v3; do
    LAMEMO_ISA=$level "$LAMEMO" compress -q -c -m toy small > "$out" 2> "$err" || continue # not on this machine
    cmp "$out" first || fail "$level: another archive"
done

# Terminals: archives are not written to one.
script -qec true /dev/null > "$out" 2> "$err" < /dev/null || exit 0
script -qec "'$LAMEMO' compress -c -m toy small" /dev/null > "$out" 2> "$err" < /dev/null || true
says "$out" "an archive is not written to a terminal"
