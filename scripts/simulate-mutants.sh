#!/usr/bin/env bash
# Breaks one guard after another in a copy of the tree, as scripts/faults-mutants.sh does, and
# runs the simulation from a seed on until it detects that, for FOR at most. Prints a row of
# Markdown for each mutant: in how many plans and seconds, and the invariant that was broken.
# It never fails because of a mutant: many break what the simulation does not have.
# Usage: SEED=1 FOR=60s scripts/simulate-mutants.sh [name...]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
seed=${SEED:-1}
span=${FOR:-60s}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $# -eq 0 ]; then
  for patch in internal/faults/testdata/mutants/*.patch; do
    set -- "$@" "$(basename "$patch" .patch)"
  done
fi

echo "| guard | mutation | plans | seconds | invariant |"
echo "|---|---|---|---|---|"
for name in "$@"; do
  patch=$root/internal/faults/testdata/mutants/$name.patch
  what=$(sed -n 's/^What: //p' "$patch" | head -n 1)
  tree=$work/tree
  mkdir "$tree"
  git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$tree"
  (cd "$tree" && GIT_CEILING_DIRECTORIES=$work git apply --whitespace=nowarn "$patch" && go test -c -o "$work/test" ./internal/simulate)
  rm -rf "$tree"
  if (cd "$work" && timeout 5m ./test -test.run '^TestSimulate$' -test.timeout 0 -test.v -simulate.noshrink \
    -simulate.seed "$seed" -simulate.runs 1 -simulate.for "$span") >"$work/out" 2>&1; then
    ops=$(sed -n 's/.* \([0-9]*\) operations, .*/\1/p' "$work/out" | tail -n 1)
    echo "| $name | $what | none of $((ops / 150)) | $span | |" # a plan has 150
    continue
  fi
  found=$(sed -n 's/.*: plan \([0-9]*\), seed [0-9]*, breaks "\([^"]*\)" after \([0-9a-z.]*\)$/| \1 | \3 | \2 |/p' "$work/out" | head -n 1)
  echo "| $name | $what ${found:-| | | failed: $(grep -m 1 -e panic -e Error "$work/out")|}"
done
