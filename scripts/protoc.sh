#!/usr/bin/env bash
# protoc.sh FILE.proto... [-- PROTOC-OPTION...]: generates Go beside the .proto
# files, which are named relative to the root of the repository. For a package
# in messages/:
#
#   //go:generate ../scripts/protoc.sh messages/timers.proto
#
# An -I for protoactor's actor.proto (the PID) is given when a file imports it.
#
# The gRPC stubs of services go into the folder rpc beside their file, a package of
# its own, so that a program that imports only the messages does not link gRPC.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh protoc
plugin=$(scripts/tool.sh protoc-gen-go)

files=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  files+=("$1")
  shift
done
if [ $# -gt 0 ]; then
  shift
fi

options=(-I .)
if grep -q '^import "actor.proto";' "${files[@]}"; then
  actor=github.com/asynkron/protoactor-go
  options+=(-I "$(go list -m -f '{{.Dir}}' "$actor")/actor" --go_opt="Mactor.proto=$actor/actor")
fi

protoc "${options[@]}" --plugin="protoc-gen-go=$plugin" \
  --go_out=. --go_opt=paths=source_relative "$@" "${files[@]}"

outputs=("${files[@]/%.proto/.pb.go}")

services=$(grep -l '^service ' "${files[@]}" || true)
if [ -n "$services" ]; then
  plugin=$(scripts/tool.sh protoc-gen-go-grpc)
  module=$(go list -m)
fi
for file in $services; do
  stubs=$(dirname "$file")/rpc
  protoc "${options[@]}" --plugin="protoc-gen-go-grpc=$plugin" \
    --go-grpc_out=. --go-grpc_opt="module=$module" --go-grpc_opt="M$file=$module/$stubs;rpc" "$file"
  outputs+=("$stubs/$(basename "${file%.proto}")_grpc.pb.go")
done

# The header names the version of protoc, which differs between machines and
# changes nothing else: without it the output is the same everywhere.
for out in "${outputs[@]}"; do
  sed -E '/^\/\/ (\t|- )protoc  *v[0-9]/d' "$out" >"$out.$$"
  mv "$out.$$" "$out"
done
