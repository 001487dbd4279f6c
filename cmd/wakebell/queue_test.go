package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestQueuePublishAndNode(t *testing.T) {
	b := setup(t)
	id := strings.TrimSpace(b.fine("queue", "publish", "--queue", "TOPIC", "--text", "hi", "--dedup-key", "k", "--window", "1h"))
	require.Len(t, id, 32)
	require.Equal(t, "duplicate\n", b.fine("queue", "publish", "--queue", "TOPIC", "--text", "hi", "--dedup-key", "k"))
	dup := objects(t, b.fine("queue", "publish", "--queue", "TOPIC", "--hex", "00ff", "--dedup-key", "k", "-o", "json"))[0]
	require.Equal(t, id, dup["id"])
	require.Equal(t, false, dup["fresh"])
	b.fine("queue", "publish", "--queue", "TOPIC", "--json", `{"n": 1}`)
	b.fine("queue", "publish", "--queue", "TOPIC", "--hex", "00ff")

	listed := objects(t, b.fine("queue", "ls", "--queue", "TOPIC", "-o", "json"))
	require.Len(t, listed, 3)
	require.Equal(t, id, listed[0]["id"])
	require.Contains(t, b.fine("queue", "ls", "--queue", "TOPIC", "--limit", "1"), id)
	require.EqualValues(t, 3, objects(t, b.fine("queue", "stats", "--queue", "TOPIC", "-o", "json"))[0]["pending"])
	require.Contains(t, b.fine("queue", "stats", "--queue", "TOPIC"), "pending")

	node := b.start("node", "--queue", "TOPIC", "--visibility-timeout", "10s", "--completed", "2", "--max-concurrent", "1")
	lines := node.lines(3)
	require.EqualValues(t, 0, objects(t, b.fine("queue", "drain", "--queue", "TOPIC", "--timeout", "20s", "-o", "json"))[0]["pending"])
	require.Zero(t, node.stop())
	require.Equal(t, id, lines[0]["id"])
	require.Equal(t, "hi", lines[0]["body"])
	require.Equal(t, map[string]any{"n": 1.0}, lines[1]["body"])
	require.Equal(t, "AP8=", lines[2]["body_base64"])
	require.EqualValues(t, 2, objects(t, b.fine("queue", "stats", "--queue", "TOPIC", "-o", "json"))[0]["completed"])
	require.Equal(t, "deleted 2\n", b.fine("queue", "purge", "--queue", "TOPIC", "--kept", "--running", "--yes"))
}

func TestQueueDead(t *testing.T) {
	b := setup(t)
	code := func(args ...string) int { c, _, _ := b.call(args...); return c }
	for _, body := range []string{"a", "b", "c"} {
		b.fine("queue", "publish", "--queue", "TOPIC", "--text", body)
	}
	node := b.start("node", "--queue", "TOPIC", "--max-concurrent", "1", "--exec", `echo "no: $(cat)" >&2; exit 65`)
	list := func() []map[string]any {
		return objects(t, b.fine("queue", "dead", "ls", "--queue", "TOPIC", "-o", "json"))
	}
	node.eventually(func() bool { return len(list()) == 3 })
	require.Zero(t, node.stop())
	letters := list()
	require.Equal(t, "a", letters[0]["body"])
	require.Equal(t, "exit status 65: no: a", letters[0]["reason"])
	entry := letters[0]["entry"].(string)
	require.Contains(t, b.fine("queue", "dead", "ls", "--queue", "TOPIC", "--limit", "1"), entry)
	require.Contains(t, b.fine("queue", "dead", "show", "--queue", "TOPIC", entry), "no: a")
	require.Equal(t, letters[0], objects(t, b.fine("queue", "dead", "show", "--queue", "TOPIC", entry, "-o", "json"))[0])
	require.Equal(t, "redriven 1\n", b.fine("queue", "dead", "redrive", "--queue", "TOPIC", entry, "--dedup-key", "k"))
	require.Equal(t, cli.ExitNotFound, code("queue", "dead", "redrive", "--queue", "TOPIC", entry))
	require.Equal(t, "duplicate\n", b.fine("queue", "publish", "--queue", "TOPIC", "--text", "x", "--dedup-key", "k"))
	require.Equal(t, "deleted 1\n", b.fine("queue", "dead", "rm", "--queue", "TOPIC", letters[1]["entry"].(string), "--yes"))
	require.Equal(t, "redriven 1\n", b.fine("queue", "dead", "redrive", "--queue", "TOPIC", "--all", "--yes"))
	require.Equal(t, "deleted 0\n", b.fine("queue", "dead", "rm", "--queue", "TOPIC", "--all", "--yes"))
	require.Equal(t, "deleted 2\n", b.fine("queue", "purge", "--queue", "TOPIC", "--yes"))
}

func TestQueueUsage(t *testing.T) {
	b := setup(t)
	code := func(args ...string) int { c, _, _ := b.call(args...); return c }
	for _, args := range [][]string{
		{"publish", "--queue", "TOPIC"},
		{"publish", "--queue", "TOPIC", "--text", "a", "--json", "1"},
		{"publish", "--queue", "TOPIC", "--json", "{"},
		{"publish", "--queue", "TOPIC", "--hex", "0"},
		{"publish", "--queue", "TOPIC", "--text", "a", "--window", "1h"},
		{"publish", "--queue", "TOPIC", "--text", "a", "--dedup-key", ""},
		{"publish", "--queue", "a::b", "--text", "a"},
		{"ls", "--queue", "TOPIC", "--limit", "-1"},
		{"drain", "--queue", "TOPIC", "--timeout", "-1s"},
		{"dead", "rm", "--queue", "TOPIC"},
		{"dead", "redrive", "--queue", "TOPIC", "--all", "--dedup-key", "k"},
	} {
		require.Equal(t, cli.ExitUsage, code(append([]string{"queue"}, args...)...), args)
	}
	require.Equal(t, cli.ExitUsage, code("node"))
	b.fine("queue", "publish", "--queue", "TOPIC", "--text", "a")
	require.Equal(t, cli.ExitError, code("queue", "drain", "--queue", "TOPIC", "--timeout", "150ms"))
}
