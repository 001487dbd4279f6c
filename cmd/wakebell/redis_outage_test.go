package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestCommandsPrintCauseOfWait(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	for _, url := range []string{"redis://", "redis+cluster://"} {
		b := &bundle{t: t, topic: "x", redis: url + server.Addr}
		code, stdout, stderr := b.call("--hash-tag", "ls", "-t", "x")
		require.Equal(t, cli.ExitError, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "wakebell: redis at "+server.Addr+" refuses connections; trying for another ")
		require.Contains(t, stderr, `wakebell: list "x": redis at `+server.Addr+" refuses connections\n")
	}
}
