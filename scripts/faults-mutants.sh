#!/usr/bin/env bash
# Breaks one guard after another in a copy of the tree and runs what must detect it. The
# header of a patch says what that is, and the first that does ends it: scenarios of the fault harness, for up to $rounds
# rounds each, because some faults need an overlap that not every round has (Scenarios:);
# a number of runs of the model of all operations on timers (Model:), or of the simulation
# (Simulation:); or the tests of a package that a pattern matches (Tests:). Prints a row of
# Markdown for each mutant, and fails if one is not detected. CHECKS, such as
# "model simulation", names the checks that count. Usage: scripts/faults-mutants.sh [name...]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
seed=${SEED:-1}
readonly rounds=8
readonly checks=${CHECKS:-scenarios model simulation tests}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field NAME FILE: the value of "NAME: " in the header of a patch.
field() { sed -n "s/^$1: //p" "$2" | head -n 1; }

# scenarios PATCH NAME: runs the scenarios of a patch until one detects it.
scenarios() {
  local scenario round
  [ -n "$(field Scenarios "$1")" ] || return 0
  go test -c -o "$work/$2.test" ./internal/faults
  for scenario in $(field Scenarios "$1"); do
    for ((round = 0; round < rounds; round++)); do
      if ! (cd internal/faults && "$work/$2.test" -test.run '^TestFaults$' -test.timeout 5m \
        -faults.seed $((seed + round)) -faults.only "$scenario") >"$work/out" 2>&1; then
        detected=$scenario
        # The first violation, or else the failed assertion of the scenario.
        how=$(sed -n "s/^FAIL $scenario: //p" "$work/out" | grep -v '^round ' | head -n 1 | cut -d ';' -f 1 || true)
        return
      fi
    done
  done
}

# model PATCH: runs the model as often as a patch says. It names the shortest sequence of
# operations last.
model() {
  local runs
  runs=$(field Model "$1")
  [ -n "$runs" ] || return 0
  if ! go test ./redisops/shards -run '^TestEveryPairOfOperations$' -count 1 -timeout 0 \
    -models.runs "$runs" -models.seed "$seed" >"$work/out" 2>&1; then
    detected=model
    how=$(awk '/pairs_test.go/ { if (n++) exit } { if (n && NF) last = $0 } END { print last }' "$work/out" | sed 's/^ *//')
  fi
}

# simulation PATCH: runs the simulation from the seed on, for as many plans as a patch says.
simulation() {
  local runs
  runs=$(field Simulation "$1")
  [ -n "$runs" ] || return 0
  if ! go test ./internal/simulate -run '^TestSimulate$' -count 1 -timeout 0 \
    -simulate.runs "$runs" -simulate.seed "$seed" >"$work/out" 2>&1; then
    detected="simulation, $(grep -o 'seed [0-9]*' "$work/out" | head -n 1)"
    how=$(sed -n 's/^ *[^ ]* *BROKEN //p' "$work/out" | head -n 1)
  fi
}

# tests PATCH: runs the tests that a patch names.
tests() {
  local package pattern
  read -r package pattern <<<"$(field Tests "$1")"
  [ -n "$package" ] || return 0
  if ! go vet "$package"; then # a mutant that does not compile proves nothing
    echo "faults-mutants: $package does not compile with $2" >&2
    exit 1
  fi
  if ! go test "$package" -run "$pattern" -count 1 >"$work/out" 2>&1; then
    detected=$(sed -n 's/^ *--- FAIL: \([^ ]*\).*/\1/p' "$work/out" | head -n 1)
    detected=${detected:-$pattern}
  fi
}

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
  cd "$tree"
  detected="" how=""
  for check in $checks; do
    [ -n "$detected" ] || "$check" "$patch" "$name"
  done
  cd "$root"
  rm -rf "$tree"
  if [ -z "$detected" ]; then
    missed=1
    echo "| $name | $(field What "$patch") | **nothing** | |"
    continue
  fi
  how=${how:-$(sed -n 's/^[[:space:]]*Messages:[[:space:]]*/failed: /p' "$work/out" | head -n 1)}
  how=${how:-$(sed -n 's/^[[:space:]]*Error:[[:space:]]*/failed: /p' "$work/out" | head -n 1)}
  echo "| $name | $(field What "$patch") | $detected | ${how:-$(sed -n 's/^[[:space:]]*[a-z_]*_test.go:[0-9]*: //p' "$work/out" | head -n 1)} |"
done
exit "$missed"
