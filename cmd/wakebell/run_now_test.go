//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestRunNow(t *testing.T) {
	b := setup(t)
	gate := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	b.fine("schedule", "-t", "TOPIC", "--id", "runs")
	node := b.start("node", "-t", "TOPIC", "--max-concurrent", "1", "--exec", "echo waits >&2; read go <"+gate)
	node.says("waits")
	b.fine("schedule", "-t", "TOPIC", "--id", "waits", "--in", "1h")
	code, stdout, stderr := b.call("run-now", "-t", "TOPIC", "runs", "waits", "missing", "-o", "json")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, stderr, "1 of 3")
	b.golden("run_now.jsonl", stdout)
	b.golden("run_now.txt", b.fine("run-now", "-t", "TOPIC", "runs", "waits"))
	require.Contains(t, b.fine("ls", "-t", "TOPIC", "--due-before", "0s"), "waits")
	b.fine("cancel", "-t", "TOPIC", "--all", "--yes")
}
