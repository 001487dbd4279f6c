//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSkipFailedFreesKey has a timer that waits for its retry while the next one of its
// key is due.
func TestSkipFailedFreesKey(t *testing.T) {
	b := setup(t)
	for _, id := range []string{"fails", "next"} {
		b.fine("schedule", "-t", "TOPIC", "--id", id, "--key", "k", "--text", "x")
	}
	node := b.start("node", "-t", "TOPIC", "--per-key", "1", "--skip-failed", "--retry-initial", "1h", "--retry-max", "1h",
		"--exec", `test "$WAKEBELL_ID" != fails`)
	lines := node.lines(2)
	require.Equal(t, "fails", lines[0]["id"])
	require.Equal(t, "next", lines[1]["id"], "it does not wait for the retry")
}

// TestFairKeysHaveKeysTakeTurns has a timer of a customer behind several of another, all due
// at the same instant: a turn that has begun is forgotten when all that is due is later.
func TestFairKeysHaveKeysTakeTurns(t *testing.T) {
	b := setup(t)
	for _, id := range []string{"big1", "big2", "big3", "big4", "small"} {
		b.fine("schedule", "-t", "TOPIC", "--id", id, "--key", id[:3], "--at", "2026-01-01T00:00:00Z", "--text", "x")
	}
	node := b.start("node", "-t", "TOPIC", "--per-key", "10", "--fair-keys", "1", "--key-weights", "big=2", "--max-concurrent", "1", "--exec", "true")
	for i, id := range []string{"big1", "big2", "small", "big3", "big4"} {
		require.Equal(t, id, node.lines(i + 1)[i]["id"])
	}
	code, _, stderr := b.call("node", "-t", "TOPIC", "--key-weights", "big=many", "--exec", "true")
	require.NotZero(t, code)
	require.Contains(t, stderr, "KeyWeights big")
}

// TestKeyRunLeasesTimersTogether has a node lease timers of a key together and run them in their order.
func TestKeyRunLeasesTimersTogether(t *testing.T) {
	b := setup(t)
	gate := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	ids := []string{"c", "a", "d", "b"}
	for _, id := range ids {
		b.fine("schedule", "-t", "TOPIC", "--id", id, "--key", "k", "--at", "2026-01-01T00:00:00Z", "--text", "x")
	}
	node := b.start("node", "-t", "TOPIC", "--per-key", "1", "--key-run", "10",
		"--exec", `test "$WAKEBELL_ID" != c || { echo waits >&2; read go <`+gate+"; }")
	node.says("waits")
	require.Contains(t, b.fine("get", "-t", "TOPIC", "a"), "running", "it is leased with the one before it")
	require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0o600))
	for i, id := range ids {
		require.Equal(t, id, node.lines(i + 1)[i]["id"])
	}
	code, _, stderr := b.call("node", "-t", "TOPIC", "--key-run", "101", "--exec", "true")
	require.NotZero(t, code)
	require.Contains(t, stderr, "KeyRun: 101 is not within 0 and 100")
}
