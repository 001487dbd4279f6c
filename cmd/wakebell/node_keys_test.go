//go:build unix

package main

import (
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
