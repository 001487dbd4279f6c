#!/usr/bin/env bash
# release-files.sh OUT: writes what a release has beside the programs into the folder
# OUT: completions, man pages (compressed), Debian's changelog, and the tool that writes
# bills of materials. goreleaser runs it before it builds.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$1
rm -rf "$out"
mkdir -p "$out/bin" "$out/completions" "$out/man"
out=$(cd "$out" && pwd)

go build -trimpath -o "$out/bin/wakebell" ./cmd/wakebell
for shell in bash zsh fish; do
  "$out/bin/wakebell" completion "$shell" >"$out/completions/wakebell.$shell"
done
"$out/bin/wakebell" man "$out/man"
date=$(TZ=UTC LC_ALL=C git log -1 --date=format-local:'%b %Y' --format=%cd) # of the commit, so that builds are equal
sed -i "s/^\(\.TH .*\)\"Jan 0001\"/\1\"$date\"/" "$out"/man/*.1
gzip -n -9 "$out"/man/*.1
version=$(git describe --tags --always)
gzip -n -9 >"$out/changelog.gz" <<EOF
wakebell (${version#v}) stable; urgency=medium

  * https://github.com/wakebell/wakebell/blob/main/CHANGELOG.md

 -- The Wakebell authors <wakebell@users.noreply.github.com>  $(TZ=UTC LC_ALL=C git log -1 --date=format-local:'%a, %d %b %Y %H:%M:%S +0000' --format=%cd)
EOF
(cd tools/release && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$out/bin" ./sbom ./image)
