#!/usr/bin/env bash
# words.sh: fails when a document, a comment or a message uses a word of
# scripts/words.txt, and prints "file:line: word -> replacement" for each.
# Checked are tracked *.md (without code blocks, inline code and link targets),
# comments and strings of *.go, and comments of *.lua and *.proto; generated
# code, CHANGELOG.md and LICENSE are not.
set -euo pipefail
set -f # patterns and exceptions are not names of files

cd "$(dirname "${BASH_SOURCE[0]}")/.."
list=scripts/words.txt

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Writes the prose of all files to $dir/text, and "file:line" of each of its
# lines to $dir/place.
git ls-files -z -- '*.md' '*.go' '*.lua' '*.proto' ':!CHANGELOG.md' ':!*.pb.go' |
  xargs -0 awk -v text="$dir/text" -v place="$dir/place" '
    FNR == 1 {
      kind = FILENAME; sub(/.*\./, "", kind)
      block = 0; raw = 0; fenced = 0; generated = 0
    }
    FNR <= 3 && /^\/\/ Code generated .* DO NOT EDIT\.$/ { generated = 1 }
    generated { next }

    # goProse is what a line of Go has in comments and strings.
    function goProse(s,    out, i, c, two) {
      out = ""
      for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1); two = substr(s, i, 2)
        if (block) {
          if (two == "*/") { block = 0; i++ } else out = out c
        } else if (raw) {
          if (c == "`") { raw = 0; out = out " " } else out = out c
        } else if (two == "//") {
          return out " " substr(s, i + 2)
        } else if (two == "/*") {
          block = 1; i++
        } else if (c == "`") {
          raw = 1
        } else if (c == "\"") {
          for (i++; i <= length(s) && (c = substr(s, i, 1)) != "\""; i++) {
            if (c == "\\") i++; else out = out c
          }
          out = out " "
        } else if (c == "\047") { # a rune
          i += substr(s, i + 1, 1) == "\\" ? 3 : 2
        }
      }
      return out
    }

    kind == "md" {
      if ($0 ~ /^ *```/) { fenced = !fenced; next }
      if (fenced || $0 ~ /^    /) next
      s = $0
      gsub(/`[^`]*`/, "``", s)
      gsub(/\]\([^)]*\)/, "]", s)
    }
    kind == "go" { s = goProse($0) }
    kind == "lua" || kind == "proto" {
      s = $0
      if (!sub(kind == "lua" ? "^.*--" : "^.*//", "", s)) next
    }
    s ~ /[A-Za-z]/ { print s >text; print FILENAME ":" FNR >place }
  '

found=0
while IFS=$'\t' read -r word replacement except; do
  case $word in '' | '#'*) continue ;; esac
  hits=$(grep -inoE -e "$word" "$dir/text") || [ $? -eq 1 ] # 2: not an expression
  [ -n "$hits" ] || continue
  while IFS=: read -r n hit; do
    where=$(sed -n "${n}p" "$dir/place")
    for glob in $except; do
      # shellcheck disable=SC2254 # the exceptions are patterns
      case ${where%:*} in $glob) continue 2 ;; esac
    done
    echo "$where: $hit -> $replacement"
    found=1
  done <<<"$hits"
done <"$list"
if [ "$found" -ne 0 ]; then
  echo "words: use the words of docs/glossary.md; exceptions are the third column of $list" >&2
  exit 1
fi
