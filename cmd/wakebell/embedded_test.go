package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// in returns the --redis of a directory. A later --redis precedes that of the bundle.
func in(dir string) []string { return []string{"--redis", "embedded:" + dir + "?sync=everysec"} }

func TestEmbeddedStoreKeepsTimersBetweenCommands(t *testing.T) {
	b := setup(t)
	dir := filepath.Join(t.TempDir(), "store")
	b.fine(append(in(dir), "schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")...)
	require.Contains(t, b.fine(append(in(dir), "ls", "-t", "TOPIC")...), "x")
	b.fine(append(in(dir), "schedule", "-t", "TOPIC", "--id", "y", "--text", "now")...)
	node := b.start(append(in(dir), "node", "-t", "TOPIC")...)
	require.Equal(t, "y", node.lines(1)[0]["id"])

	code, _, stderr := b.call(append(in(dir), "ls", "-t", "TOPIC")...)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "is in use by process")
	require.Contains(t, stderr, "--remote")
}

// Another process uses the store of a node by its socket, and moves a topic away while the
// node runs.
func TestEmbeddedStoreIsMovedToRedisWhileNodeRuns(t *testing.T) {
	b := setup(t)
	dir, err := os.MkdirTemp("", "wb") //nolint:usetesting // the paths of sockets are short
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	socket := filepath.Join(dir, "s")
	redis := "embedded:" + filepath.Join(dir, "store") + "?socket=" + socket
	b.fine("--redis", redis, "schedule", "-t", "TOPIC", "--id", "x", "--in", "1h", "--text", "late")
	node := b.start("--redis", redis, "node", "-t", "TOPIC")
	node.says("opened embedded store")
	b.fine("--redis", "unix://"+socket, "schedule", "-t", "TOPIC", "--id", "y", "--in", "2h")
	b.fine("--redis", "unix://"+socket, "topics", "move", "TOPIC", "--to", b.redis)
	listed := b.fine("ls", "-t", "TOPIC")
	require.Contains(t, listed, "x")
	require.Contains(t, listed, "y")
	b.fine("cancel", "-t", "TOPIC", "x", "y")
}

func TestEmbeddedCheckAndExport(t *testing.T) {
	b := setup(t)
	dir := filepath.Join(t.TempDir(), "store")
	b.fine(append(in(dir), "schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")...)
	b.fine(append(in(dir), "schedule", "-t", "TOPIC", "--id", "y", "--in", "1h")...)
	checked := objects(t, b.fine("embedded", "check", dir, "-o", "json"))[0]
	require.Equal(t, dir, checked["directory"])
	require.Nil(t, checked["torn"])
	require.Empty(t, checked["damage"])
	require.Contains(t, b.fine("embedded", "check", dir), "records")

	path := filepath.Join(dir, "log-00000001")
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	log[80] ^= 1
	require.NoError(t, os.WriteFile(path, log, 0o600))
	code, _, stderr := b.call(append(in(dir), "ls", "-t", "TOPIC")...)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "log-00000001 is damaged at byte 48")
	require.Contains(t, stderr, "wakebell embedded export "+dir)

	code, stdout, _ := b.call("embedded", "check", dir)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stdout, "log-00000001 at byte 48: the checksum of a record is wrong")
	saved := filepath.Join(t.TempDir(), "saved")
	code, _, stderr = b.call("embedded", "export", dir, "--to", saved)
	require.Zero(t, code)
	require.Contains(t, stderr, "lost: log-00000001 is damaged at byte 48")
	require.Contains(t, b.fine(append(in(saved), "ls", "-t", "TOPIC")...), "y")
	require.Contains(t, b.fine("embedded", "export", saved), "ZADD")
}

func TestEmbeddedURLIsChecked(t *testing.T) {
	b := setup(t)
	for _, where := range []string{"embedded:", "embedded:x?sync=never", "embedded:x?size=1", "embedded:x?sync=no&sync=no"} {
		code, _, stderr := b.call("--redis", where, "topics")
		require.Equal(t, cli.ExitUsage, code, where)
		require.Contains(t, stderr, "--redis")
	}
}
