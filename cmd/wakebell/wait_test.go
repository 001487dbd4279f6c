package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/connection"
)

func TestWait(t *testing.T) {
	b := setup(t)
	conn, err := connection.New(b.rdb, connection.Config{})
	require.NoError(t, err)
	topic := wakebell.NewTopic[string](b.topic)
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleResult(topic, func(ctx context.Context, timer wakebell.Timer[string]) (map[string]int, error) {
			return map[string]int{"rows": len(timer.Body)}, timer.Progress(ctx, 1, "all rows")
		}),
	}})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { _ = sys.Stop() })
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--text", "abc")
	shown := b.fine("wait", "TOPIC", "x", "--timeout", "1m")
	require.Contains(t, shown, "done")
	require.Contains(t, shown, "100 %, all rows")
	line := objects(t, b.fine("wait", "TOPIC", "x", "-o", "json"))[0]
	require.Equal(t, "done", line["end"])
	require.Equal(t, map[string]any{"rows": 3.0}, line["result"].(map[string]any)["content"].(map[string]any)["body"])

	b.fine("schedule", "-t", "TOPIC", "--id", "later", "--in", "1h", "--text", "abc")
	code, _, stderr := b.call("wait", "TOPIC", "later", "--timeout", "100ms")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "has not ended within --timeout")
	code, _, _ = b.call("wait", "TOPIC", "none")
	require.Equal(t, cli.ExitNotFound, code)
	b.fine("cancel", "-t", "TOPIC", "later")
}
