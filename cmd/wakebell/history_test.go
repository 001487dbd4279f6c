package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestHistoryAndThroughput(t *testing.T) {
	b := setup(t)
	node := b.start("node", "-t", "TOPIC", "--listen", "127.0.0.1:0", "--history", "all")
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--json", "1")
	b.fine("schedule", "-t", "TOPIC", "--id", "y", "--json", "1")
	node.lines(2)
	var all []map[string]any
	node.eventually(func() bool { all = objects(t, b.fine("history", "-t", "TOPIC", "-o", "json")); return len(all) == 2 })
	require.Equal(t, "acked", all[0]["outcome"])
	require.Equal(t, true, all[0]["final"])
	one := b.fine("history", "-t", "TOPIC", "x")
	require.Contains(t, one, "acked")
	require.NotContains(t, one, "y ")
	require.Empty(t, b.fine("history", "-t", "TOPIC", "--outcome", "dead", "-o", "json"))
	require.Empty(t, b.fine("history", "-t", "TOPIC", "--error-match", "timeout", "-o", "json"))
	require.Len(t, objects(t, b.fine("history", "-t", "TOPIC", "--since", "1h", "-n", "1", "-o", "json")), 1)
	require.Len(t, objects(t, b.fine("history", "-t", "TOPIC", "--after", fmt.Sprint(all[0]["cursor"]), "-o", "json")), 1)
	for _, wrong := range [][]string{{"-n", "0"}, {"--outcome", "odd"}, {"--since", "-1s"}, {"--after", "x"}} {
		code, _, stderr := b.call(append([]string{"history", "-t", "TOPIC"}, wrong...)...)
		require.Equal(t, cli.ExitUsage, code, stderr)
	}
	code, _, stderr := b.call("node", "-t", "TOPIC", "--history", "some")
	require.Equal(t, cli.ExitUsage, code, stderr)

	o := b.over(node)
	o.same("history", "-t", "TOPIC", "-o", "json")
	sum := func(kind string) (n float64) {
		line := objects(t, o.Does("stats", "-t", "TOPIC", "--since", "6h", "-o", "json"))[0]
		throughput := line["throughput"].(map[string]any)
		require.InDelta(t, 60, throughput["step_s"], 0)
		require.Len(t, throughput[kind], 360)
		for _, count := range throughput[kind].([]any) {
			n += count.(float64)
		}
		return n
	}
	node.eventually(func() bool { return sum("handled") == 2 })
	require.InDelta(t, 2, sum("scheduled"), 0)
	table := b.fine("stats", "-t", "TOPIC", "--since", "6h")
	require.Contains(t, table, "THROUGHPUT")
	require.Contains(t, table, "█")
	require.NotContains(t, b.fine("stats", "-t", "TOPIC"), "THROUGHPUT")
	code, _, stderr = b.call("stats", "-t", "TOPIC", "--since", "91d")
	require.Equal(t, cli.ExitUsage, code, stderr)
}

func TestHistoryAndThroughputOfQueue(t *testing.T) {
	b := setup(t)
	node := b.start("node", "--queue", "TOPIC", "--listen", "127.0.0.1:0", "--history", "all")
	b.fine("queue", "publish", "--queue", "TOPIC", "--json", "1")
	b.fine("queue", "publish", "--queue", "TOPIC", "--json", "2")
	node.lines(2)
	var all []map[string]any
	node.eventually(func() bool {
		all = objects(t, b.fine("queue", "history", "--queue", "TOPIC", "-o", "json"))
		return len(all) == 2
	})
	require.Equal(t, "acked", all[0]["outcome"])
	require.Equal(t, b.topic, all[0]["queue"])
	id := fmt.Sprint(all[0]["id"])
	require.Len(t, objects(t, b.fine("queue", "history", "--queue", "TOPIC", id, "-o", "json")), 1)
	require.Contains(t, b.fine("queue", "history", "--queue", "TOPIC"), id)
	require.Empty(t, b.fine("queue", "history", "--queue", "TOPIC", "--outcome", "dead", "--since", "1h", "--error-match", "x", "-o", "json"))
	for _, wrong := range [][]string{{"history", "-n", "0"}, {"history", "--outcome", "odd"}, {"stats", "--since", "1s"}} {
		code, _, stderr := b.call(append(append([]string{"queue"}, wrong...), "--queue", "TOPIC")...)
		require.Equal(t, cli.ExitUsage, code, stderr)
	}

	require.Contains(t, all[1]["node"], "/")
	o := b.over(node)
	o.same("queue", "history", "--queue", "TOPIC", "-o", "json")
	sum := func(kind string) (n float64) {
		line := objects(t, o.Does("queue", "stats", "--queue", "TOPIC", "--since", "6h", "-o", "json"))[0]
		for _, count := range line["throughput"].(map[string]any)[kind].([]any) {
			n += count.(float64)
		}
		return n
	}
	node.eventually(func() bool { return sum("handled") == 2 })
	require.InDelta(t, 2, sum("published"), 0)
	require.Contains(t, b.fine("queue", "stats", "--queue", "TOPIC", "--since", "6h"), "█")
	require.NotContains(t, b.fine("queue", "stats", "--queue", "TOPIC"), "throughput")
	require.Contains(t, b.fine("stats", "--queues", "--since", "6h"), "THROUGHPUT")
	_, checks, _ := b.call("doctor", "--all", "-o", "json") // the keys of other tests may be bad
	require.Contains(t, checks, "the counts and the history can be read")

	require.Zero(t, node.stop())
	b.fine("queue", "purge", "--queue", "TOPIC", "--kept", "--yes")
	require.Empty(t, b.fine("queue", "history", "--queue", "TOPIC", "-o", "json"))
}
