#!/bin/sh
# Instructions per record of every contestant of `routing`, counted by callgrind: they are the same
# on a busy machine, so a regression shows where times are too noisy.
#
# usage: benches/instructions.sh [filter]…
set -eu
cd "$(dirname "$0")/.."
if ! command -v valgrind >/dev/null; then
    echo "instructions.sh: SKIPPED: valgrind is not installed" >&2
    exit 0
fi

bench=${BENCH:-routing}
few=${FEW:-100000}
many=${MANY:-300000}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

program=$(cargo bench --bench "$bench" --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)

# Two runs of different length: what remains in the difference is paid per record.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$program" --once "$1" "$2" --n "$3" 2>&1 >/dev/null |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

printf '| table | contestant | instructions per record |\n| :--- | :--- | ---: |\n'
"$program" --list "$@" >"$out"
tab=$(printf '\t')
while IFS=$tab read -r table contestant; do
    a=$(count "$table" "$contestant" "$few")
    b=$(count "$table" "$contestant" "$many")
    awk -v t="$table" -v c="$contestant" -v a="$a" -v b="$b" -v n="$((many - few))" \
        'BEGIN { printf "| %s | %s | %.1f |\n", t, c, (b - a) / n }'
done <"$out"
