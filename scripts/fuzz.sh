#!/usr/bin/env bash
# fuzz.sh: runs every fuzz test of the module in turn, FUZZTIME (60s) each.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# go test -list prints the names of a package's tests, then a line "ok package".
list=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')
if [ -z "$list" ]; then
  echo "fuzz: there are no fuzz tests" >&2
  exit 1
fi

while read -r package name; do
  echo "fuzz: $package $name" >&2
  go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-60s}" "$package" </dev/null
done <<<"$list"
