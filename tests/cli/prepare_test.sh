# prepare_test.sh -- `lamemo prepare` as people use it, and as they misuse it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work"

i=0
while [ $i -lt 200 ]; do
    echo "line $i of a small text , with words and numbers $((i * i))"
    i=$((i + 1))
done > text.txt
bytes=$(wc -c < text.txt)

# Any text, byte by byte; the same through every packing and through a pipe.
run 0 prepare --out plain text.txt
says "$out" "text: bytes, vocabulary of 256, measured in bpc"
for pack in "gzip -c" "xz -c" "zstd -qc"; do
    command -v "${pack%% *}" > /dev/null || continue
    $pack text.txt > packed
    run 0 prepare -q --out packed.out --replace --name text packed
    [ ! -s "$out" ] || fail "--quiet is not quiet"
    cmp plain/train.bin packed.out/train.bin > "$err" || fail "$pack changed the text"
    "$LAMEMO" prepare -q --out piped --replace - < packed
    cmp plain/test.bin piped/test.bin > "$err" || fail "$pack through a pipe changed the text"
done

run 2 prepare --out never text.txt - -
says "$err" "standard input can be read only once"

# Bytes that are no text are taken, and pointed out.
! grep -q "looks like" "$err" || fail "a text looks like a binary file"
{ cat text.txt; head -c 1000 /dev/zero; } > picture.raw
run 0 prepare --out picture picture.raw --split 100/0/0
says "$err" "warning: picture.raw looks like a binary file (8 % control bytes)"

mkdir pictures
cp picture.raw pictures
run 0 prepare --split 100/0/0 --out picture --replace pictures
says "$err" "warning: picture.raw looks like a binary file"
run 1 prepare --corpus words --out never pictures
says "$err" "pictures/picture.raw: not text: a zero byte at byte $bytes; only bytes and bpe take a file that is not text"

# The summary for machines is JSON and says the same.
run 0 prepare --json --out words --corpus words --min_count 2 text.txt
says "$out" '"kind": "words"'
says "$out" '"metric": "ppl"'
says "$out" "\"bytes\": $bytes"
[ "$(cat "$out")" = "$(cat words/corpus.json)" ] ||
    fail "--json is not corpus.json"

# The sizes are those asked for.
run 0 prepare --split-tokens 1000/200/300 --out sizes text.txt
says "$out" "1,000 tokens"
run 0 prepare --split 1k/0.2k/0.3k --replace --out sizes text.txt
says "$out" "1,000 tokens"
says "$err" "tokens are in no split"
run 2 prepare --split 80/10/20 --out never text.txt
says "$err" "--split: '80/10/20': percentages must add up to 100"
run 2 prepare --split 80/10/10 --split-tokens 80/10/10 --out never text.txt
run 1 prepare --split 1G/5M/5M --out never text.txt
says "$err" "the split needs 1010000000"

# Folders keep their splits; a folder that is not the published corpus is refused by name.
mkdir ptb
for s in train valid test; do echo "the cat sat on the <unk>" > ptb/ptb.$s.txt; done
run 1 prepare --corpus ptb --out never ptb
says "$err" "this is not ptb: train has 7 tokens, not 929589"
run 2 prepare --corpus words --min-count 1 --split 80/10/10 --out never ptb
says "$err" "ptb has splits of its own: ptb.train.txt, ..."
run 0 prepare --corpus ptb --force --name toy --out toy ptb
says "$out" "prepared like ptb, which it is not: results are those of toy"
run 1 prepare --corpus enwik8 --out never text.txt
says "$err" "text.txt is not enwik8: it has $bytes bytes, not 100000000"
run 1 prepare --corpus wt103 --out never text.txt
says "$err" "text.txt: wt103 needs its three splits"
run 1 prepare --corpus wt2 --out never .
says "$err" "wiki.{train,valid,test}.tokens"

# Packed splits, however they are called, keep apart; the files are listed; text in two of them is pointed out.
mkdir packed.splits
gzip -c text.txt > packed.splits/train.txt.gz
xz -c text.txt > packed.splits/dev.xz
echo held out > packed.splits/test.txt
run 0 prepare --out apart packed.splits
says "$out" "10,944 bytes   train.txt.gz"
says "$err" "train.txt.gz (train) and dev.xz (valid) are the same text"
says "$err" "chunks of the valid split (256 tokens each) are in the train split, too"
[ "$(tail -c +65 apart/test.bin)" = "held out" ] || fail "test is not the test file"
cp packed.splits/test.txt packed.splits/heldout.txt
run 1 prepare --out never packed.splits
says "$err" "heldout.txt: the name speaks of splits"
run 0 prepare --join --out joined packed.splits
says "$out" "joined "

# A folder of texts is one text, in the order of the names; other files are none of them.
mkdir -p books/deeper
printf 'second. ' > books/b2.txt
printf 'first. ' > books/a10.txt
printf 'third.\n%200s\n' x | gzip > books/c.txt.gz
echo notes > books/notes.md
echo hidden > books/.d.txt
run 0 prepare --out books.corpus --json books/
says "$out" '"name": "books"'
grep '"file"' "$out" | tr -d ' ",' | tr '\n' ' ' > names
[ "$(cat names)" = "file:a10.txt file:b2.txt file:c.txt.gz " ] || fail "other files or order: $(cat names)"
run 1 prepare --out never books/deeper
says "$err" "books/deeper: holds no text"
run 2 prepare --corpus enwik8 --out never books
says "$err" "enwik8 is one file, not a folder"
echo fourth > books/deeper/d.txt
run 0 prepare --out books.corpus --replace books
says "$err" "not read: deeper/, notes.md (--recursive reads folders)"
run 0 prepare --out books.corpus --replace --recursive books
says "$out" "7 bytes   deeper/d.txt"

# Words of a text that people write: punctuation apart, <unk> counted and warned of.
printf '%s\n' 'He saw him, him; "him." Once.' > prose.txt
run 0 prepare --corpus words --min-count 1 --split 100/0/0 --out prose prose.txt
for word in '"him"' '","' '"@\""' '"<unk>"'; do
    grep -qF "$word" prose/vocab.json || fail "$word is no word"
done
run 0 prepare --corpus words --min-count 2 --split 100/0/0 --replace --out prose prose.txt
says "$out" "(53.85 %) became <unk>"
says "$err" "warning: 53.8 % of the train split became <unk>"
run 0 prepare --corpus words --blanks --min-count 1 --split 100/0/0 --replace --out prose prose.txt
grep -qF '"him,"' prose/vocab.json || fail "--blanks cuts words"
run 2 prepare --blanks --out never prose.txt
says "$err" "--blanks: bytes are all kept"

# With the vocabulary of another corpus: its kind and rules, its numbers, its very file; what it lacks is <unk>.
printf 'LINE 1 of a larger text ,\nwith more words than numbers\n' > more.txt
run 0 prepare --corpus words --lower --min-count 2 --out lowered text.txt
run 0 prepare --vocab-from lowered --out known --split 100/0/0 more.txt
symbols=$(sed -n 's/.*"size": \([0-9]*\),/\1/p' lowered/vocab.json)
says "$out" "more: words, vocabulary of $symbols from lowered, measured in ppl"
says "$out" "14 tokens, 3 of them (21.43 %) became <unk>" # larger, more, than
cmp lowered/vocab.json known/vocab.json || fail "another vocabulary"
run 0 prepare --vocab_file lowered/vocab.json --corpus words --out file more.txt
cmp lowered/vocab.json file/vocab.json || fail "another vocabulary from its file"
run 0 prepare --corpus chars --out letters text.txt
run 1 prepare --vocab-from letters --out never more.txt
says "$err" "more.txt, line 1, character 1: 'L' is not in the vocabulary of letters, which has no <unk>, nor are"
run 2 prepare --vocab-from letters --corpus words --out never text.txt
says "$err" "--corpus words: the vocabulary of letters is one of chars"
run 2 prepare --vocab-from lowered --corpus ptb --out never ptb
says "$err" "--corpus ptb and --vocab-from contradict each other"
for option in "--min-count 2" "--max-vocab 9" --lower; do
    # shellcheck disable=SC2086
    run 2 prepare --vocab-from lowered $option --out never text.txt
    says "$err" "${option%% *}: the vocabulary of --vocab-from is taken as it is"
done
run 1 prepare --vocab-from nowhere --out never text.txt
says "$err" "nowhere: there is no such folder"
run 1 prepare --vocab-from books --out never text.txt
says "$err" "books: not a model folder: it has no config.json, best or last; nor a corpus folder: it has no corpus.json"

# Wrong usage: exit 2, one line and where to look.
for wrong in "--corpus latin text.txt" "--split 1/2 text.txt" "--min-count 0 text.txt" \
    "--min-count 2 text.txt" "--corpus enwik8 --split 90/5/5 text.txt" "--force text.txt" \
    "--name enwik8 text.txt" "--corpus enwik8 text.txt text.txt" ""; do
    # shellcheck disable=SC2086
    run 2 prepare --out never $wrong
    says "$err" "Try 'lamemo prepare --help'."
done
for name in "$(printf 'two\nlines')" "$(printf 'caf\351')"; do
    run 2 prepare --out never --name "$name" text.txt
    says "$err" "the name of a corpus is one line of UTF-8"
done
run 2 prepare text.txt
says "$err" "--out DIR is missing"

# Bad data: exit 1, one line that names the thing.
run 1 prepare --out never missing.txt
says "$err" "missing.txt: cannot open: No such file or directory"
run 1 prepare --out /proc/never text.txt
says "$err" "prepare: /proc/never: cannot make the folder"
run 1 prepare --out never /dev/null
says "$err" "null: the text is empty"
mkdir hollow
: > hollow/train.txt
cp text.txt hollow/valid.txt
run 1 prepare --out never hollow
says "$err" "train.txt: the train split is empty"
printf x > one.txt
run 1 prepare --out never one.txt
says "$err" "one.txt: 0 of its 1 tokens are for training, at least 2 are needed"
printf 'good\n\377bad\n' > latin1.txt
run 1 prepare --corpus chars --out never latin1.txt
says "$err" "latin1.txt: not valid UTF-8 at byte 5; if it is latin1, --encoding latin1 converts it"
code=0
"$LAMEMO" prepare --corpus chars --out never - < latin1.txt > "$out" 2> "$err" || code=$?
[ "$code" -eq 1 ] || fail "a pipe that is no UTF-8 gave exit $code"
says "$err" "standard input: not valid UTF-8 at byte 5"
# A text that is too short for train as it stands is prepared, and pointed out; one that is not, is not.
head -c 200 text.txt > short.txt
run 0 prepare -q --out short short.txt
says "$err" "warning: the train split has 180 tokens: a whole step of the smallest preset, tiny, takes 1040"
says "$err" "warning: the valid split has 10 tokens: evaluations need 32, or fewer streams"
says "$err" "warning: the test split has 10 tokens"
run 2 train --data short --out never
says "$err" "10 tokens of the valid split are too few for 16 streams"
head -c 1155 text.txt > short.txt
run 0 prepare -q --split-tokens 1040/32/83 --out enough short.txt
[ ! -s "$err" ] || fail "a warning without need"
run 0 train -q --data enough --max-step 1 --out enough/run
run 0 prepare -q --split-tokens 1041/31/0 --out no_test short.txt
[ "$(grep -c warning "$err")" -eq 1 ] || fail "not one warning"
run 0 prepare -q --split-tokens 1039/33/83 --out no_step short.txt
[ "$(grep -c warning "$err")" -eq 1 ] || fail "not one warning"

# Texts from elsewhere: CR LF becomes LF, a mark goes, encodings are converted or named.
printf '\357\273\277one\r\ntwo\r\nthree\r\n' > crlf.txt
printf '\377\376o\000n\000e\000\n\000' > utf16.txt
bytes_of() { tail -c +65 "$1/train.bin" | od -An -c | tr -d ' \n'; }
run 0 prepare --split 100/0/0 --out crlf crlf.txt
says "$err" "crlf.txt: 3 lines end with CR LF, which became LF"
[ "$(bytes_of crlf)" = 'one\ntwo\nthree\n' ] || fail "not LF: $(bytes_of crlf)"
run 0 prepare --split 100/0/0 --keep-crlf --replace --out crlf crlf.txt
[ "$(bytes_of crlf)" = 'one\r\ntwo\r\nthree\r\n' ] || fail "not kept: $(bytes_of crlf)"
run 0 prepare --split 100/0/0 --out utf16 utf16.txt
says "$err" "utf16.txt: utf-16, taken as it is"
run 1 prepare --corpus chars --out never utf16.txt
says "$err" "utf16.txt: utf-16, not UTF-8: --encoding utf-16 converts it"
for encoding in utf-16 auto; do
    run 0 prepare --split 100/0/0 --encoding $encoding --replace --out utf16 utf16.txt
    [ "$(bytes_of utf16)" = 'one\n' ] || fail "not converted: $(bytes_of utf16)"
done
run 0 prepare --corpus chars --encoding latin1 --out latin1 latin1.txt
run 2 prepare --encoding latin-9000 --out never latin1.txt
says "$err" "--encoding: unknown encoding 'latin-9000'"
gzip -c text.txt | head -c 500 > cut.gz
run 1 prepare --out never cut.gz
says "$err" "cut.gz: ends inside its gzip data at byte 500"
run 1 prepare --out plain text.txt
says "$err" "plain: there is a corpus already"
run 1 prepare --out text.txt/sub text.txt
mkdir full && touch full/file
run 1 prepare --replace --out full text.txt
says "$err" "full: exists and is not a corpus folder"

# Replacing a corpus takes nothing else along.
echo mine > plain/diary
run 1 prepare --replace --out plain text.txt
says "$err" "plain: holds diary, which is no part of a corpus"
[ -e plain/diary ] || fail "--replace removed somebody's file"

# A disk that is full (here: files may not grow beyond 1 block).
code=0
(
    trap '' XFSZ
    ulimit -f 1
    "$LAMEMO" prepare --out never text.txt 2> "$err"
) || code=$?
[ "$code" -eq 1 ] || fail "a full disk gave exit $code"

# Stopping: 143 after SIGTERM, and the folder does not appear.
mkfifo pipe
"$LAMEMO" prepare --out never pipe > "$out" 2> "$err" &
pid=$!
exec 3> pipe
printf 'some text' >&3
halt TERM $pid
exec 3>&-
[ "$code" -eq 143 ] || fail "SIGTERM gave exit $code"
says "$err" "stopped"

# Nothing half written is left by any of these.
[ ! -e never ] || fail "a failed run left its folder"
# shellcheck disable=SC2144
for leftover in ./*.tmp; do
    [ ! -e "$leftover" ] || fail "$leftover was left behind"
done
