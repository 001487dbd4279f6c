package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestCancel(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--count", "5", "--in", "1h")
	require.Equal(t, "ID   WAS\nx-0  pending\n", b.fine("cancel", "-t", "TOPIC", "x-0"))
	code, stdout, stderr := b.call("cancel", "-t", "TOPIC", "x-1", "missing", "-o", "json")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, stderr, "1 of 2")
	b.golden("cancel.jsonl", stdout)
	b.golden("cancel_all.json", b.fine("cancel", "-t", "TOPIC", "--all", "--yes", "-o", "json"))
	require.Equal(t, "cancelled 0\n", b.fine("cancel", "-t", "TOPIC", "--all", "-y"))
}
