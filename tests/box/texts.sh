# texts.sh -- the texts by which the model in the box is measured, for the test and for scripts/box.sh alike.
# shellcheck shell=sh
# Source it in the root of the source tree.
# shellcheck disable=SC2034
BOX_START=8192 # bytes of wiki100m's test split that a CPU reads in seconds

# box_field NAME: the number NAME of the first JSON object on standard input.
box_field() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" | head -1; }

# box_start [CORPUS]: the beginning of wiki100m's test split.  It is taken from a prepared corpus or the text itself (100,000,000 bytes,
# plain or .xz): CORPUS, or what LAMEMO_WIKI100M names, or ../shared/data/wiki100m.xz.  Fails where there is none.
box_start() {
    box_from=${1:-${LAMEMO_WIKI100M:-../shared/data/wiki100m.xz}}
    if [ -f "$box_from/test.bin" ]; then
        tail -c +65 "$box_from/test.bin" | box_head # behind the header
    elif [ -f "$box_from" ]; then
        case $box_from in *.xz) xz -dc "$box_from" ;; *) cat "$box_from" ;; esac |
            tail -c 5000000 | box_head
    else
        return 1
    fi
}

# Reads to the end: whoever feeds it must not die of a closed pipe.
box_head() {
    head -c $BOX_START
    cat > /dev/null
}
