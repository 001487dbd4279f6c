#!/usr/bin/env bash
# release.sh OUT: builds all files of a release of the checked-out commit, which has a
# tag, into the folder OUT, and publishes nothing: archives, deb, rpm, bills of
# materials, the container image, the Homebrew cask, the scoop manifest, and checksums.
# SIGN=1 signs the checksums with cosign and the identity of the workflow that runs it.
set -euo pipefail

out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
changes=$(git status --porcelain)
if [ -n "$changes" ]; then # the version of the programs would end with "+dirty"
  printf 'release: the tree has changes that are not committed:\n%s\n' "$changes" >&2
  exit 1
fi
goreleaser=$(scripts/tool.sh goreleaser)

# goreleaser wants a place to publish to; it is not asked.
GITHUB_TOKEN=unused GOFLAGS=-mod=readonly "$goreleaser" release --clean --skip=publish,announce,validate --parallelism 2

version=$(git describe --tags --exact-match)
date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
.release/bin/image ".release/wakebell_${version#v}_image.tar" "$version" "$(git rev-parse HEAD)" "$date" \
  linux/amd64="$(ls dist/wakebell_linux_amd64*/wakebell)" linux/arm64="$(ls dist/wakebell_linux_arm64*/wakebell)"
cp dist/*.tar.gz dist/*.zip dist/*.deb dist/*.rpm dist/*.cdx.json .release/wakebell_*_image.tar dist/homebrew/Casks/wakebell.rb dist/scoop/wakebell.json "$out"
(cd "$out" && sha256sum -- wakebell* >checksums.txt)
if [ -n "${SIGN:-}" ]; then
  cosign sign-blob --yes --bundle "$out/checksums.txt.sigstore.json" "$out/checksums.txt"
fi
