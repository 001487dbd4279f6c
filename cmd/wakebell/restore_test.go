package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

// What docs/operations.md says of a restore from a snapshot: what was handled or cancelled
// since then is delivered, what was scheduled is lost, and tokens of gates are not reused.
func TestRestoreFromSnapshot(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr, rdb: server.Client(t)}
	handles := func(flag string, n int) (ids []string) {
		node := b.start("node", flag, "TOPIC")
		for _, line := range node.lines(n) {
			if id, ok := line["id"].(string); ok {
				ids = append(ids, id)
			}
		}
		require.Zero(t, node.stop())
		return ids
	}
	fence := func() int64 {
		return int64(objects(t, b.fine("gate", "hold", "month", "--exec", "true"))[0]["fence"].(float64)) // exact up to 2^53
	}
	due := func(id string) any {
		code, stdout, _ := b.call("get", "-t", "TOPIC", id, "-o", "json")
		if code == cli.ExitNotFound {
			return nil
		}
		return objects(t, stdout)[0]["due"]
	}
	const first, second = "2040-01-02T03:04:05Z", "2041-01-02T03:04:05Z"
	b.fine("schedule", "-t", "TOPIC", "--id", "handled before")
	require.Equal(t, []string{"handled before"}, handles("--topic", 1))
	b.fine("schedule", "-t", "TOPIC", "--id", "handled since")
	b.fine("schedule", "-t", "TOPIC", "--id", "cancelled", "--at", first)
	b.fine("schedule", "-t", "TOPIC", "--id", "moved", "--at", first)
	b.fine("queue", "publish", "--queue", "TOPIC", "--text", "message")
	fence()
	require.NoError(t, b.rdb.Save(t.Context()).Err())

	require.Equal(t, []string{"handled since"}, handles("--topic", 1))
	require.Len(t, handles("--queue", 1), 1)
	b.fine("cancel", "-t", "TOPIC", "cancelled")
	b.fine("schedule", "-t", "TOPIC", "--id", "moved", "--at", second)
	b.fine("schedule", "-t", "TOPIC", "--id", "lost", "--at", first)
	newest := fence()

	server.Kill()
	server.Restart(t)
	require.Equal(t, []any{first, first, nil, nil}, []any{due("cancelled"), due("moved"), due("lost"), due("handled before")})
	require.Equal(t, []string{"handled since"}, handles("--topic", 1))
	require.Len(t, handles("--queue", 1), 1)
	require.Greater(t, fence(), newest)
}

// An append-only file that is synced has all that was answered.
func TestRestoreFromAppendOnlyFile(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr, rdb: server.Client(t)}
	b.fine("schedule", "-t", "TOPIC", "--id", "handled")
	b.fine("schedule", "-t", "TOPIC", "--id", "cancelled", "--in", "1h")
	node := b.start("node", "-t", "TOPIC")
	node.lines(1)
	require.Zero(t, node.stop())
	b.fine("cancel", "-t", "TOPIC", "cancelled")
	b.fine("schedule", "-t", "TOPIC", "--id", "waits", "--in", "1h")
	server.Kill()
	server.Restart(t)
	require.Equal(t, []string{"waits"}, b.rdb.ZRange(t.Context(), "timers_timeline:t", 0, -1).Val())
}
