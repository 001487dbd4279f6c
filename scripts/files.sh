#!/usr/bin/env bash
# files.sh: fails when a tracked file is a built program or another binary, or
# exceeds 512 KiB; prints each. Pictures may be binary.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

bad=0
complain() {
  echo "$1: $2" >&2
  bad=1
}

while IFS= read -r -d '' file; do
  [[ -f $file ]] || continue # deleted, and not committed yet
  if [[ $(stat -c %s "$file" 2>/dev/null || stat -f %z "$file") -gt 524288 ]]; then
    complain "$file" 'exceeds 512 KiB'
  elif [[ ! $file =~ \.(png|ico|woff2)$ && -s $file ]] && ! LC_ALL=C grep -qI '' "$file"; then
    complain "$file" 'is binary'
  fi
done < <(git ls-files -z)
exit "$bad"
