#!/usr/bin/env bash
# files.sh: fails when a tracked file is a built program or another binary, or
# exceeds 512 KiB; prints each. Pictures may be binary.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A file that is deleted, and not committed yet, is in the index. No process for each file:
# there are thousands.
tracked() { git ls-files -z "$@" | xargs -0 sh -c 'for f; do [ -f "$f" ] && printf "%s\0" "$f"; done; :' sh; }

large=$(tracked | xargs -0 sh -c 'find "$@" -maxdepth 0 -size +1024 -print' sh) # blocks of 512 bytes, rounded up
# An empty file has no line that is text, but it is none that is binary.
binary=$(tracked ':!*.png' ':!*.ico' ':!*.woff2' | LC_ALL=C xargs -0 sh -c 'grep -LI "" "$@"; :' sh |
  while IFS= read -r file; do [ ! -s "$file" ] || echo "$file"; done)

[ -z "$large" ] || sed 's/$/: exceeds 512 KiB/' <<<"$large" >&2
[ -z "$binary" ] || sed 's/$/: is binary/' <<<"$binary" >&2
[ -z "$large$binary" ]
