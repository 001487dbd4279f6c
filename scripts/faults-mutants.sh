#!/usr/bin/env bash
# Breaks one guard after another in a copy of the tree and runs the fault
# scenarios that must detect it, for up to $rounds rounds each: some faults need an
# overlap that not every round has. Prints a row of Markdown for each mutant, and
# fails if one is not detected. Usage: scripts/faults-mutants.sh [name...]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
seed=${SEED:-1}
readonly rounds=8

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field NAME FILE: the value of "NAME: " in the header of a patch.
field() { sed -n "s/^$1: //p" "$2" | head -n 1; }

if [ $# -eq 0 ]; then
  for patch in internal/faults/testdata/mutants/*.patch; do
    set -- "$@" "$(basename "$patch" .patch)"
  done
fi

echo "| guard | mutation | detected by | as |"
echo "|---|---|---|---|"
missed=0
for name in "$@"; do
  patch=$root/internal/faults/testdata/mutants/$name.patch
  tree=$work/$name
  mkdir "$tree"
  git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$tree"
  (cd "$tree" && GIT_CEILING_DIRECTORIES=$work git apply --whitespace=nowarn "$patch")
  (cd "$tree" && go test -c -o "$work/$name.test" ./internal/faults)
  detected=""
  for scenario in $(field Scenarios "$patch"); do
    for ((round = 0; round < rounds; round++)); do
      if ! (cd "$tree/internal/faults" && "$work/$name.test" -test.run '^TestFaults$' -test.timeout 5m \
        -faults.seed $((seed + round)) -faults.only "$scenario") >"$work/out" 2>&1; then
        detected=$scenario
        break 2
      fi
    done
  done
  if [ -z "$detected" ]; then
    missed=1
    echo "| $name | $(field What "$patch") | **nothing** | |"
    continue
  fi
  # The first violation, or else the failed assertion of the scenario.
  how=$(sed -n "s/^FAIL $detected: //p" "$work/out" | grep -v '^round ' | head -n 1 | cut -d ';' -f 1 || true)
  how=${how:-$(sed -n 's/^[[:space:]]*Messages:[[:space:]]*/failed: /p' "$work/out" | head -n 1)}
  echo "| $name | $(field What "$patch") | $detected | ${how:-$(sed -n 's/^[[:space:]]*[a-z_]*_test.go:[0-9]*: //p' "$work/out" | head -n 1)} |"
done
exit "$missed"
