#!/usr/bin/env bash
# protoc-clients.sh: generates the messages of the clients in clients/python and
# clients/typescript from messages/*.proto. The output is committed, so that users of
# the packages need neither protoc nor its plugins.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh protoc typescript-client

# Python code differs between versions of protoc. Debian 12 and 13 and Ubuntu 24.04
# have this one, whose code works with all later versions of the runtime.
wanted='libprotoc 3.21.'
if [[ $(protoc --version) != "$wanted"* ]]; then
  echo "protoc-clients: $(protoc --version), want ${wanted}x: other versions generate other Python code" >&2
  exit 1
fi

# The messages of the service Timers, and of WaitTimer; the clients do not use the others.
files=(wakebell gateway endings gates queues recurring remote)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Python's modules have the names of the files, so these are in a folder of the
# package. Its registry of messages is global, so these have names of their own: a
# program may also use stubs that it generated itself.
package=wakebell/_pb
mkdir -p "$work/$package"
for file in "${files[@]}"; do
  sed "s|^import \"messages/|import \"$package/|; s|^package wakebell\.v1;|package wakebell.python.v1;|" "messages/$file.proto" >"$work/$package/$file.proto"
done
cp clients/python/status.proto "$work/$package/"
python=clients/python/src
rm -f "$python/$package"/*_pb2.py "$python/$package"/*_pb2.pyi
protoc -I "$work" --python_out="$python" --pyi_out="$python" "$work/$package"/*.proto

typescript=clients/typescript
rm -f "$typescript"/src/pb/*_pb.ts
mkdir -p "$typescript/src/pb"
# The service itself, and of Operations only WaitTimer.
sed -E '/^service Operations \{/,/^\}/{ /^service|WaitTimer\(|^\}/!d; }; /operations.proto/d' messages/services.proto >"$work/services.proto"
mkdir "$work/messages"
mv "$work/services.proto" "$work/messages/"
for file in "${files[@]}"; do
  cp "messages/$file.proto" "$work/messages/"
done
protoc -I "$work" --plugin="protoc-gen-es=$typescript/node_modules/.bin/protoc-gen-es" \
  --es_out="$work" --es_opt=target=ts,import_extension=js "$work"/messages/*.proto
mv "$work"/messages/*_pb.ts "$typescript/src/pb/"
