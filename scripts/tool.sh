#!/usr/bin/env bash
# tool.sh NAME: prints the path of a tool of tools/go.mod, or of tools/release/go.mod:
# goreleaser has hundreds of dependencies, which no other tool needs. It is built into
# .tools/ once per version of the tools and of Go: golangci-lint takes minutes.
set -euo pipefail

name=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root/tools"
of=""

package=$(sed -n "s|^\t\(.*/$name\)\$|\1|p" go.mod | head -n 1)
if [ -z "$package" ]; then
  cd release
  of=release-
  package=$(sed -n "s|^tool \(.*/$name\(/v[0-9]*\)\?\)\$|\1|p" go.mod | head -n 1)
fi
if [ -z "$package" ]; then
  echo "tool: tools/go.mod and tools/release/go.mod have no tool '$name'" >&2
  exit 2
fi

version=$of$({ cat go.mod go.sum; go version; } | cksum | tr ' ' '-')
binary="$root/.tools/$version/$name"
if [ ! -x "$binary" ]; then
  echo "tool: building $name, once (golangci-lint and goreleaser take minutes)" >&2
  # Tools of other versions go, so that .tools does not grow for ever.
  find "$root/.tools" -mindepth 1 -maxdepth 1 -name "$of[0-9]*" ! -name "$version" -exec rm -rf {} + 2>/dev/null || true
  mkdir -p "$root/.tools/$version"
  # By a name of its own, so that an interrupted build leaves no broken tool.
  GOFLAGS=-mod=readonly go build -buildvcs=false -o "$binary.$$" "$package"
  mv "$binary.$$" "$binary"
fi
echo "$binary"
