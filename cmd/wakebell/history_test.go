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
