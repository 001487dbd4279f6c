#!/usr/bin/env bash
# Runs the fault scenarios with nodes and clients of two versions on one Redis: those
# of the checked-out tree and those of an earlier commit. Usage:
# scripts/mixed-versions.sh [COMMIT]; SEED=1 ONLY=kill choose the round and the
# scenarios.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
seed=${SEED:-1}
only=${ONLY:-kill}

# The earliest version that this one must run beside: docs/compatibility.md. It is the
# tag of the last release as soon as there is one.
earlier=${1:-926bdd56be110b967524d4b6e266516a1c97a8df}

if ! git cat-file -e "$earlier^{commit}" 2>/dev/null; then
  if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    echo "mixed-versions: NOT TESTED: this clone is shallow and lacks commit $earlier; git fetch --unshallow gets it" >&2
    exit 0
  fi
  echo "mixed-versions: there is no commit $earlier" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/tree" "$earlier"
# What the judge of an earlier version has to know of the nodes of this one.
for patch in internal/faults/testdata/earlier/*.patch; do
  if git -C "$work/tree" apply --check "$root/$patch" 2>/dev/null; then git -C "$work/tree" apply "$root/$patch"; fi
done
(cd "$work/tree" && go test -c -o "$work/old.test" ./internal/faults)
go test -c -o "$work/new.test" ./internal/faults

# The harness of a version has its clients, so each is run with both programs of nodes.
for clients in old new; do
  for nodes in old,new new,old; do
    echo "mixed-versions: clients $clients, nodes from ${nodes%,*} to ${nodes#*,}"
    folder=$root
    [ "$clients" = new ] || folder=$work/tree
    (cd "$folder/internal/faults" && "$work/$clients.test" -test.run '^TestFaults$' -test.timeout 8m \
      -faults.seed "$seed" -faults.only "$only" -faults.programs "$work/${nodes%,*}.test,$work/${nodes#*,}.test")
  done
done
