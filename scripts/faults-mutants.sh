#!/usr/bin/env bash
# Breaks one guard after another in a copy of the tree and runs the fault
# scenarios that have to notice. Prints a row of Markdown for each mutant, and
# fails if one goes unnoticed. Usage: scripts/faults-mutants.sh [name...]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
seed=${SEED:-1}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field NAME FILE: what the head of a patch says after "NAME: ".
field() { sed -n "s/^$1: //p" "$2" | head -n 1; }

if [ $# -eq 0 ]; then
  for patch in internal/faults/testdata/mutants/*.patch; do
    set -- "$@" "$(basename "$patch" .patch)"
  done
fi

echo "| guard | broken so that | noticed by | as |"
echo "|---|---|---|---|"
missed=0
for name in "$@"; do
  patch=$root/internal/faults/testdata/mutants/$name.patch
  tree=$work/$name
  mkdir "$tree"
  git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$tree"
  (cd "$tree" && GIT_CEILING_DIRECTORIES=$work git apply --whitespace=nowarn "$patch")
  (cd "$tree" && go test -c -o "$work/$name.test" ./internal/faults)
  noticed=""
  for scenario in $(field Scenarios "$patch"); do
    if ! (cd "$tree/internal/faults" && "$work/$name.test" -test.run '^TestFaults$' -test.timeout 5m \
      -faults.seed "$seed" -faults.only "$scenario") >"$work/out" 2>&1; then
      noticed=$scenario
      break
    fi
  done
  if [ -z "$noticed" ]; then
    missed=1
    echo "| $name | $(field What "$patch") | **nothing** | |"
    continue
  fi
  # The first violation, or else what the scenario itself asked for.
  how=$(sed -n "s/^FAIL $noticed: //p" "$work/out" | grep -v '^round ' | head -n 1 | cut -d ';' -f 1 || true)
  how=${how:-$(sed -n 's/^[[:space:]]*Messages:[[:space:]]*/not so: /p' "$work/out" | head -n 1)}
  echo "| $name | $(field What "$patch") | $noticed | ${how:-$(sed -n 's/^[[:space:]]*[a-z_]*_test.go:[0-9]*: //p' "$work/out" | head -n 1)} |"
done
exit "$missed"
