#!/usr/bin/env bash
# trace.sh: prints, for each way of a timer, how many functions of this module run on
# it, in how many files and packages: what a reader has to follow. With a way as the
# argument (schedule, deliver, subscribe) it lists the functions. Each way is gone several
# times, and counts what ran every time: a look ahead that falls into the span, or an answer
# that a busy machine delays, is not on the way.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=${GO:-go}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$go" build -cover -covermode=atomic -coverpkg=./... -o "$dir/trace" ./scripts/trace

# functions WAY: "file function" of each that ran, without those of this program and of
# the test server.
functions() {
  local run runs=()
  mkdir -p "$dir/$1" "$dir/exit" # what the end of the process adds does not count
  for run in 1 2 3 4 5; do
    mkdir "$dir/$1/$run"
    GOCOVERDIR="$dir/exit" "$dir/trace" "$1" "$dir/$1/$run"
    runs+=("$dir/$1/$run")
  done
  mkdir "$dir/$1/every"
  "$go" tool covdata intersect -i "$(IFS=, && echo "${runs[*]}")" -o "$dir/$1/every"
  "$go" tool covdata textfmt -i "$dir/$1/every" -o "$dir/$1.profile"
  "$go" tool cover -func "$dir/$1.profile" |
    awk '$NF != "0.0%" && $1 != "total:" { sub(/^github.com\/[^\/]*\/wakebell\//, "", $1); sub(/:.*/, "", $1); print $1, $2 }' |
    grep -v '^scripts/trace/\|^internal/redistest/' | sort
}

if [ $# -gt 0 ]; then
  functions "$1"
  exit
fi
printf '%-10s %9s %6s %9s\n' way functions files packages
for way in schedule deliver subscribe; do
  functions "$way" >"$dir/$way.txt"
  printf '%-10s %9d %6d %9d\n' "$way" "$(wc -l <"$dir/$way.txt")" \
    "$(cut -d' ' -f1 "$dir/$way.txt" | sort -u | wc -l)" \
    "$(cut -d' ' -f1 "$dir/$way.txt" | xargs -n1 dirname | sort -u | wc -l)"
done
