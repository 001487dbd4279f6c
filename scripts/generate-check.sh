#!/usr/bin/env bash
# generate-check.sh: fails when `make generate` changes a file. What was
# changed before it ran does not count, so it serves a working copy as well.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

state() {
  git status --porcelain --untracked-files=all
  git diff HEAD
  git ls-files --others --exclude-standard -z | xargs -0 -r cksum
}

before=$(state)
"${MAKE:-make}" --no-print-directory generate
if [ "$before" != "$(state)" ]; then
  echo "generate-check: generated files are out of date; run 'make generate' and commit:" >&2
  git status --short >&2
  git --no-pager diff --exit-code
  exit 1
fi
