#!/usr/bin/env bash
# release-check.sh: builds two releases of the present commit, and checks that a build
# is reproducible, that all files are complete, that lintian finds no error in the debs,
# that one installs a working service, and that an upgrade under load loses no timer and
# logs no error. A tree with uncommitted changes is refused. TIMERS=10000 sets the load.
set -euo pipefail

timers=${TIMERS:-10000}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
commit=$(git -C "$root" rev-parse HEAD) # all builds are of one commit, also if another is made meanwhile
work=$(mktemp -d)
processes=()
cleanup() {
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap cleanup EXIT

step() { echo "release-check: ${SECONDS} s: $*"; }
fail() {
  step "FAILED: $*" >&2
  tail -n 5 "$work"/*.log >&2 || true
  exit 1
}

# eventually COMMAND...: repeats a command for two minutes.
eventually() {
  for _ in $(seq 1200); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "not within two minutes: $*"
}

# release TAG NAME: builds the files of a release from a clone with a tag.
release() {
  step "build $1 ($2)"
  git clone --quiet --no-checkout "$root" "$work/$2"
  git -C "$work/$2" checkout --quiet --detach "$commit"
  ln -s "$root/.tools" "$work/$2/.tools"
  git -C "$work/$2" -c user.name=release-check -c user.email=check@localhost tag "$1"
  "$work/$2/scripts/release.sh" "$work/$2-out" >"$work/$2.log" 2>&1 || fail "build $1"
}

[ -z "$(git -C "$root" status --porcelain)" ] || fail "the tree has changes that are not committed"
mkdir -p "$root/.tools"
"$root/scripts/tool.sh" goreleaser >/dev/null
release v0.0.1 first
release v0.0.1 again
diff -r "$work/first-out" "$work/again-out" >&2 || fail "two builds of a commit differ"
step "two builds are equal: $(find "$work/first-out" -type f | wc -l) files"
release v0.0.2 second
(cd "$work/second-out" && sha256sum --quiet -c checksums.txt) || fail "checksums are wrong"
for platform in linux_amd64.tar.gz linux_arm64.tar.gz darwin_amd64.tar.gz darwin_arm64.tar.gz windows_amd64.zip windows_arm64.zip \
  linux_amd64.cdx.json windows_arm64.cdx.json image.tar; do
  [ -s "$work/second-out/wakebell_0.0.2_$platform" ] || fail "no $platform"
done
tar -tf "$work/second-out/wakebell_0.0.2_linux_amd64.tar.gz" | grep '/man/wakebell-node.1.gz$' >/dev/null || fail "the archive has no man pages"
archive=$(sha256sum "$work/second-out/wakebell_0.0.2_darwin_arm64.tar.gz" | cut -d' ' -f1)
grep -q "$archive" "$work/second-out/wakebell.rb" || fail "the cask has another checksum than the archive"
tar -tf "$work/second-out/wakebell_0.0.2_darwin_arm64.tar.gz" | grep -x 'wakebell_0.0.2_darwin_arm64/wakebell' >/dev/null || fail "the archive has no directory, as the cask says"
archive=$(sha256sum "$work/second-out/wakebell_0.0.2_windows_amd64.zip" | cut -d' ' -f1)
grep -q "$archive" "$work/second-out/wakebell.json" || fail "the scoop manifest has another checksum than the archive"
grep -q '"pkg:golang/github.com/redis/go-redis/v9@' "$work/second-out/wakebell_0.0.2_linux_amd64.cdx.json" || fail "the bill of materials lacks go-redis"

# The image: its program runs, as a user without rights, with nothing else in its root.
step "check the container image"
mkdir "$work/image" "$work/image/root"
tar -C "$work/image" -xf "$work/second-out/wakebell_0.0.2_image.tar"
for blob in "$work"/image/blobs/sha256/*; do # the largest layer of this platform has the program
  if tar -xzf "$blob" -C "$work/image/root" 2>/dev/null && "$work/image/root/usr/bin/wakebell" --version >/dev/null 2>&1; then
    break
  fi
done
chroot --userspec=65532:65532 "$work/image/root" /usr/bin/wakebell --version | grep v0.0.2 >/dev/null || fail "the image's program does not run"
grep -l '"User":"65532"' "$work"/image/blobs/sha256/* | xargs grep -q '"Healthcheck":{"Test":\["CMD","/usr/bin/wakebell","health"\]' || fail "the image has no health check"

# install NAME: installs the deb of a release into the one scratch root.
installed=$work/root
mkdir -p "$installed/var/lib/dpkg/info" "$installed/var/lib/dpkg/updates" "$installed/var/lib/dpkg/triggers"
touch "$installed/var/lib/dpkg/status" "$installed/var/lib/dpkg/available"
install() {
  dpkg --root="$installed" --force-script-chrootless --log="$work/dpkg.log" -i "$work/$1-out"/*_"$(dpkg --print-architecture)".deb >"$work/dpkg-$1.log" 2>&1 ||
    fail "dpkg -i of the $1 deb"
}

step "check the debs with lintian"
lintian --allow-root --fail-on error "$work"/second-out/*.deb || fail "lintian found errors"

step "install the deb"
install first
for file in usr/bin/wakebell etc/wakebell/wakebell.yaml etc/default/wakebell usr/lib/systemd/system/wakebell.service \
  usr/lib/systemd/system/wakebell-beat.service usr/lib/systemd/system/wakebell-dash.service \
  usr/share/man/man1/wakebell-node.1.gz usr/share/bash-completion/completions/wakebell usr/share/doc/wakebell/copyright usr/share/doc/wakebell/changelog.gz; do
  [ -e "$installed/$file" ] || fail "the deb has no $file"
done
zcat "$installed"/usr/share/man/man1/wakebell-node.1.gz | grep -q "^.TH .*\"$(TZ=UTC LC_ALL=C git -C "$root" log -1 --date=format-local:'%b %Y' --format=%cd "$commit")\"" ||
  fail "the man pages have another date than the commit"
wakebell=$installed/usr/bin/wakebell
"$wakebell" config check "$installed/etc/wakebell/wakebell.yaml"
"$wakebell" --version
echo "# of the administrator" >>"$installed/etc/wakebell/wakebell.yaml"
"$wakebell" demo >"$work/demo.log" 2>&1 || fail "demo"

redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly yes --dir "$work" --maxmemory-policy noeviction >"$work/redis.log" &
processes+=($!)
export WAKEBELL_REDIS=unix://$work/redis.sock
eventually "$wakebell" topics

# start NAME: runs the command of the installed unit. A running process keeps its
# program when an upgrade replaces the file.
start() {
  local command
  command=$(sed -n 's/^ExecStart=//p' "$installed/usr/lib/systemd/system/wakebell.service")
  command=${command//\/usr\/bin/$installed/usr/bin}
  command=${command//\/etc/$installed/etc}
  WAKEBELL_NODE_HEALTH=127.0.0.1:0 WAKEBELL_NODE_LISTEN=127.0.0.1:0 WAKEBELL_NODE_TOPIC=release WAKEBELL_NODE_OUTPUT=json \
    $command >"$work/$1.out" 2>"$work/$1.node.log" &
  processes+=($!)
  started=$!
  eventually grep -q 'serving health checks' "$work/$1.node.log"
  eventually "$wakebell" health "$(sed -n 's/.*serving health checks.*"address":"\(127.0.0.1:[0-9]*\)".*/\1/p' "$work/$1.node.log")"
}

delivered() { cat "$work"/*.out | sed -n 's/.*"id":"\([^"]*\)".*/\1/p'; }
all() { [ "$(delivered | sort -u | wc -l)" -ge "$1" ]; }

step "upgrade while $timers timers run"
start first
first=$started
"$wakebell" schedule --topic release --id t --in 500ms --spacing 2ms --count "$timers" >/dev/null
eventually all $((timers / 4))
install second
"$wakebell" --version | grep v0.0.2 >/dev/null || fail "the upgrade installed no new program"
grep -q "of the administrator" "$installed/etc/wakebell/wakebell.yaml" || fail "the upgrade replaced a configuration file"
start second
second=$started
kill -TERM "$first"
wait "$first" || fail "the first node ended with $?"
eventually all "$timers"
"$wakebell" doctor --topic release >"$work/doctor.log" || true # it warns of a Redis without replicas
if grep -E '^bad' "$work/doctor.log"; then fail "doctor found a fault"; fi
kill -TERM "$second"
wait "$second" || fail "the second node ended with $?"
if grep -hE '"level":"(ERROR|WARN)"' "$work"/*.node.log; then fail "a node logged an error"; fi
twice=$(delivered | sort | uniq -d | wc -l)
step "$timers timers delivered, $twice of them more than once; $(wc -l <"$work/first.out") by the old version, $(wc -l <"$work/second.out") by the new"
[ "$twice" -eq 0 ] || fail "a drain delivered timers twice"
[ -s "$work/second.out" ] || fail "the new version delivered nothing"
