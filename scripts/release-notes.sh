#!/usr/bin/env bash
# release-notes.sh TAG: prints the section of CHANGELOG.md for a tag such as v0.1.0, which
# are the notes of its release. Fails if there is none.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
notes=$(awk -v heading="## [${1#v}] " '/^## / { on = index($0, heading) == 1; next } on' CHANGELOG.md | sed '/./,$!d')
if [ -z "$notes" ]; then
  echo "release-notes: CHANGELOG.md has nothing about $1" >&2
  exit 1
fi
printf '%s\n' "$notes"
