# report_test.sh -- lamemo report: from what runs logged to tables, plots, pages and files.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export LC_ALL=C
unset NO_COLOR

log() { # log FOLDER FACTOR: a small run
    mkdir -p "$work/$1/last"
    awk -v f="$2" 'BEGIN { for (i = 1; i <= 200; i++) printf "{\"step\":%d,\"loss\":%.6f,\"bpc\":%.6f," \
        "\"lr\":%g,\"grad_norm\":0.5,\"tokens_per_second\":1000,\"elapsed\":%d}\n",
        10 * i, f * (1 + 2 / i), f * (1 + 2 / i) / log(2), 0.001 * (1 - i / 200), i }' > "$work/$1/metrics.jsonl"
    printf '{"step":2000,"valid_loss":%s,"valid_bpc":2,"valid_stderr":0.01,"elapsed":201}\n' "$2" >> "$work/$1/metrics.jsonl"
    printf '{"memory":"%s","n_layer":4}' "$1" > "$work/$1/last/config.json"
}
log lamemo 1.25
log xl 1.5

# On the terminal: where they are, in what they differ, a plot in plain ASCII.
run 0 report "$work/lamemo" "$work/xl"
says "$out" "lamemo  lamemo  2,000      201     1,000  1.8214  1.8034    2,000"
says "$out" "memory   lamemo  xl"
says "$out" "Training loss, bits per character"
says "$out" "* lamemo"
says "$out" "o xl"
if LC_ALL=C grep -q '[^ -~]' "$out"; then fail "not plain ASCII"; fi
LC_ALL=C.UTF-8 run 0 report "$work/lamemo" --plot lr
says "$out" "Learning rate"
says "$out" "└──"
run 0 report "$work/lamemo" --plot none --over time --smooth 0.9
if grep -q "Loss" "$out"; then fail "a plot that was not wanted"; fi

# The loss after so many steps, or seconds.
run 0 report "$work/lamemo" "$work/xl" --plot none --at 1000,2000
says "$out" "2,000  1.8034  2.1640"
run 0 report "$work/lamemo" "$work/xl" --over time --at 201 --json
says "$out" '"at":[{"seconds":201.0,"lamemo":1.803368801,"xl":2.164042561}]'

# A page alone; a folder with the files of every figure.
run 0 report "$work/lamemo" "$work/xl" --out "$work/page.html" --title "A <b> title" --log xy
says "$err" "page: "
says "$work/page.html" "<h1>A &lt;b&gt; title</h1>"
says "$work/page.html" "default-src 'none'"
says "$work/page.html" '"scale":"log"'
[ "$(wc -c < "$work/page.html")" -lt 500000 ] || fail "a large page"
run 0 report -q "$work/lamemo" "$work/xl" --out "$work/made/of/folders"
for name in train valid grad-norm lr speed; do
    for kind in svg csv json; do
        [ -s "$work/made/of/folders/figures/$name.$kind" ] || fail "$name.$kind is missing"
    done
done
case $(sed -n 2p "$work/made/of/folders/figures/train.csv") in
10,5.410106403333*,6.492127684000*) ;;
*) fail "train.csv: $(sed -n 2p "$work/made/of/folders/figures/train.csv")" ;;
esac

# What a run wrote, where it was resumed with other settings, and a loss that is worse than guessing.
mkdir -p "$work/noted/last"
cat > "$work/noted/metrics.jsonl" << 'EOT'
{"step":10,"loss":9.5,"bpc":13.7,"elapsed":1}
{"step":10,"prompt":"The king","sample":" said <b>no</b>"}
{"step":10,"changed":{"lr":[0.25,0.0005],"scheduler":["cosine","linear"]}}
{"step":20,"valid_loss":7.5,"valid_bpc":10.82,"valid_stderr":0.01,"elapsed":2}
{"step":20,"prompt":"The king","sample":" went home"}
EOT
printf '{"memory":"lamemo","n_token":256}' > "$work/noted/last/config.json"
run 0 report "$work/noted" --plot none --out "$work/noted.html"
says "$out" "warning: noted: its best validation loss, 10.82 bpc, is above that of a uniform guess, 8: "
says "$out" "settings that changed on resuming"
says "$out" "noted    10  lr         0.25    0.0005"
says "$out" "noted    10  scheduler  cosine  linear"
says "$work/noted.html" "Settings that changed on resuming"
says "$work/noted.html" "What noted wrote"
says "$work/noted.html" " said &lt;b&gt;no&lt;/b&gt;"
says "$work/noted.html" "<b>Prompt</b>"
says "$work/noted.html" "Made by <code>lamemo report $work/noted --plot none --out $work/noted.html</code>"
says "$work/noted.html" "is above that of a uniform guess, 8"
run 0 report "$work/noted" --json
says "$out" '"changes":[{"step":10.0,"setting":"lr","before":"0.25","after":"0.0005"}'
rm -r "$work/noted"

# A folder of runs.
run 0 report --plot none "$work"
says "$out" "memory   lamemo  xl"

# JSON.
run 0 report --json "$work/lamemo"
says "$out" '"unit":"bpc"'
says "$out" '"valid_loss":{"records":1,"last":1.25,'
says "$out" '"config":{"memory":"lamemo","n_layer":"4"}'

# What is wrong with the input is said; the rest is shown all the same.
printf 'nonsense\n{"step":2010,"loss":1' >> "$work/xl/metrics.jsonl"
mkdir "$work/bare"
run 0 report "$work/nowhere" "$work/xl" "$work/bare"
says "$err" "nowhere: there is no such run"
says "$err" "metrics.jsonl is missing"
says "$err" "1 line left out"
says "$err" "line 202: not JSON"
if grep -q "warning: warning" "$err"; then fail "two warnings in one"; fi
says "$out" "xl   xl      2,000"
echo "a text" > "$work/text"
run 1 report "$work/text"
says "$err" "text: not a run folder or metrics.jsonl: no line is a record"
run 1 report "$work/nowhere"
says "$err" "lamemo report: $work/nowhere: there is no such run"
run 1 report "$work/nowhere" "$work/bare"
says "$err" "none of the 2 runs can be read"
mkdir "$work/kept" # what is there and cannot be read is not missing: here a link to itself
ln -s metrics.jsonl "$work/kept/metrics.jsonl"
run 1 report "$work/kept"
says "$err" "kept/metrics.jsonl: cannot open: "
ln -s corpus.json "$work/kept/corpus.json"
run 1 train --data "$work/kept" --out "$work/no"
says "$err" "kept/corpus.json: cannot open: "
mkdir "$work/empty"
: > "$work/empty/metrics.jsonl"
run 0 report "$work/empty" --out "$work/empty.html"
says "$work/empty.html" "empty"
says "$out" "empty: nothing is recorded yet"
run 0 report "$work/lamemo" "$work/xl" --out "$work/cut" --log none
grep -q '"y":{[^}]*"cut":true' "$work/cut/figures/train.json" || fail "the start of a run is not cut off"
grep -q '"finding":"lamemo is lowest: 1.8034 bits per character, at step 2,000"' "$work/cut/figures/valid.json" ||
    fail "$(cut -c 1-200 "$work/cut/figures/valid.json")"
run 0 report "$work/lamemo" "$work/xl" --out "$work/cut" --log x
! grep -q '"cut"' "$work/cut/figures/train.json" || fail "a log axis is cut off"
run 1 report "$work/lamemo" --out "$work/lamemo/metrics.jsonl/x"
says "$err" "metrics.jsonl"
run 2 report
run 2 report "$work/lamemo" --smooth 2
says "$err" "--smooth"
# A packed log, as docs/runs keeps them.
mkdir "$work/logs"
gzip -c "$work/lamemo/metrics.jsonl" > "$work/logs/kept.metrics.jsonl.gz"
cp "$work/lamemo/metrics.jsonl" "$work/logs/other.metrics.jsonl"
run 0 report "$work/logs/kept.metrics.jsonl.gz"
says "$out" "kept"
run 0 report "$work/logs"
says "$out" "kept "
says "$out" "other "

# --watch follows a run until it ends; the last page does not reload.
head -n 100 "$work/lamemo/metrics.jsonl" > "$work/short"
mkdir "$work/live"
"$LAMEMO" report "$work/live" --watch --interval 1 --out "$work/live.html" > "$work/.watched" 2> "$work/.watcherr" &
watcher=$!
wait_for() { # wait_for FILE TEXT
    for _ in $(seq 1 1200); do
        if grep -qsF -e "$2" "$1"; then return 0; fi
        sleep 0.1
    done
    cp "$work/.watched" "$out"
    cp "$work/.watcherr" "$err"
    fail "waited in vain for '$2' in $1"
}
wait_for "$work/.watcherr" "waiting: "
cp "$work/short" "$work/live/metrics.jsonl"
wait_for "$work/live.html" 'data-refresh="1"'
printf '{"step":1000,"test_loss":1.5,"test_bpc":2.1,"elapsed":300}\n' >> "$work/live/metrics.jsonl"
wait $watcher || fail "watching ended with $?"
says "$work/live.html" 'data-refresh="0"'
says "$work/.watched" "done"

run 2 report "$work/lamemo" --interval 1
says "$err" "--interval is for --watch only"

# Ctrl-C ends watching, in order.
"$LAMEMO" report "$work/lamemo" --watch --interval 1 --out "$work/stopped.html" > "$out" 2> "$err" &
watcher=$!
wait_for "$work/stopped.html" 'data-refresh="1"'
kill -TERM $watcher
wait $watcher || fail "stopped watching with $?"
says "$work/stopped.html" 'data-refresh="0"'

# Names come from folders, logs and configurations of others: none of them is markup, a script or a formula.
evil='</script><script>alert(1)</script><img src=x onerror=alert(2)>'
mkdir "$work/names"
cd "$work/names"
for name in '=HYPERLINK("x","y")' '+1+2' '-1+cmd' '@SUM(1)' '"><img src=x onerror=alert(3)>' "' onload='alert(4)"; do
    mkdir -p "./$name/last"
    awk -v evil="$evil" 'BEGIN { for (i = 1; i <= 60; i++) printf "{\"step\":%d,\"loss\":%g,\"%s\":%d," \
        "\"A\":1,\"B\":2,\"=1+1\":%d}\n", i, 1 + 1 / i, substr(evil, 1, 40), i, i }' > "./$name/metrics.jsonl"
    printf '{"memory":"%s","=2+2":"=3+%s","clamp_len":-%d}' "$evil" "$(printf %s "$name" | tr -d '"')" \
        "${#name}" > "./$name/last/config.json"
done
run 0 report ./* --out ../evil --title "$evil" --at 10
[ "$(grep -o '<script>' ../evil/report.html | wc -l)" -eq 2 ] || fail "scripts that are not ours"
for tag in '<img' 'alert(1)</script>'; do
    ! grep -qF "$tag" ../evil/report.html || fail "$tag in the page"
    ! grep -lF "$tag" ../evil/figures/*.svg ../evil/figures/*.json || fail "$tag in a figure"
done
says ../evil/report.html "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"
for file in ../evil/figures/*.csv; do
    ! grep -q -e '^"\{0,1\}[=+@-]' -e ',"\{0,1\}[=+@]' -e ',"\{0,1\}-[^0-9]' "$file" || fail "a formula in $file: $(cat "$file")"
done
says ../evil/figures/summary.csv "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""
says ../evil/figures/differences.csv "'=2+2,'=3+"
grep -q '^clamp_len,-' ../evil/figures/differences.csv || fail "a number became a text"
[ -s ../evil/figures/other--.csv ] || fail "the curve A is missing"
[ -s ../evil/figures/other---2.csv ] || fail "the curve B replaced A"
if command -v xmllint > /dev/null; then
    xmllint --noout ../evil/figures/*.svg 2> "$err" || fail "an SVG is not XML"
fi
cd - > /dev/null

# Lines of any length and depth: left out, and what is around them is shown.
mkdir "$work/odd"
{
    printf '{"step":1,"loss":3}\n{"step":2,"loss":2,"x":"'
    head -c 3000000 /dev/zero | tr '\0' x
    printf '"}\n{"step":3,"loss":2,"x":'
    head -c 100000 /dev/zero | tr '\0' '['
    printf '\n{"step":4,"loss":1e400}\n{"step":1e300,"loss":1}\n{"step":5,"loss":2.5}\n'
} > "$work/odd/metrics.jsonl"
run 0 report "$work/odd" --json
says "$err" "4 lines left out; $work/odd/metrics.jsonl, line 2: longer than 1048576 bytes"
says "$out" '"loss":{"records":2,"last":2.5,'
