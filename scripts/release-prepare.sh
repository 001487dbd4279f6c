#!/usr/bin/env bash
# release-prepare.sh TAG: commits and tags a release such as v0.1.0, and pushes nothing. In
# CHANGELOG.md, what is under Unreleased becomes the version's section, behind a draft of
# it, with today's date. The message of the tag is that section.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tag=$1
refuse() {
  echo "release-prepare: $*" >&2
  exit 1
}
[[ $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || refuse "$tag is no tag such as v0.1.0"
[ -z "$(git status --porcelain)" ] || refuse "the tree has changes that are not committed"
! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || refuse "there is a tag $tag already"

# section HEADING: prints the text of a section, without its heading and empty lines around.
section() { awk -v heading="$1" '/^## / { on = index($0, heading) == 1; next } on' CHANGELOG.md | sed '/./,$!d'; }
heading="## [${tag#v}]"
draft=$(section "$heading - not tagged yet")
unreleased=$(section '## [Unreleased]')
[ -z "$draft" ] || [ -z "$unreleased" ] || unreleased="### Since the draft"$'\n\n'"$unreleased"
{
  sed '/^## /,$d' CHANGELOG.md
  printf '## [Unreleased]\n\n%s - %s\n' "$heading" "$(date -u +%Y-%m-%d)"
  for text in "$draft" "$unreleased"; do [ -z "$text" ] || printf '\n%s\n' "$text"; done
  awk -v draft="$heading" '/^## / { on = index($0, draft) != 1 && index($0, "## [Unreleased]") != 1; if (on) print "" } on' CHANGELOG.md
} >CHANGELOG.md.new
mv CHANGELOG.md.new CHANGELOG.md
notes=$(scripts/release-notes.sh "$tag") || { git checkout -q CHANGELOG.md && exit 1; }
git commit -q -m "release: $tag" CHANGELOG.md
git tag --annotate --cleanup=whitespace --message "$notes" "$tag"
echo "release-prepare: $tag is tagged; look at it with: git show $tag"
echo "release-prepare: then: make release-check, and: git push origin HEAD $tag"
