package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestAudit(t *testing.T) {
	b := setup(t)
	b.fine("pause", "-t", "TOPIC", "--by", "ada", "--reason", "the bank is down")
	b.fine("retune", "-t", "TOPIC", "--max-concurrent", "3")
	b.fine("resume", "-t", "TOPIC")
	all := objects(t, b.fine("audit", "--name", "TOPIC", "-o", "json"))
	require.Len(t, all, 3)
	require.Equal(t, "topic.pause", all[0]["operation"])
	require.Equal(t, "by: ada, reason: the bank is down", all[0]["detail"])
	require.Equal(t, "process", all[0]["via"])
	require.Contains(t, all[0]["by"], "@")
	require.InDelta(t, 1, all[0]["count"], 0)
	text := b.fine("audit", "--name", "TOPIC", "--operation", "topic.retune", "--since", "1h")
	require.Equal(t, 1, strings.Count(text, "\n"))
	require.Contains(t, text, "topic.retune       "+b.topic+"  1, by ")
	require.Contains(t, text, ": max_concurrent: 3")
	require.Len(t, objects(t, b.fine("audit", "--name", "TOPIC", "-n", "1", "-o", "json")), 1)
	require.Empty(t, b.fine("audit", "--name", "TOPIC", "-n", "0"))
	require.Len(t, objects(t, b.fine("audit", "--name", "TOPIC", "--after", fmt.Sprint(all[0]["cursor"]), "-o", "json")), 2)
	require.Empty(t, b.fine("audit", "--name", "TOPIC", "--by", "no process"))
	for _, wrong := range [][]string{{"-n", "1001"}, {"--since", "-1s"}, {"--after", "x"}} {
		code, _, stderr := b.call(append([]string{"audit"}, wrong...)...)
		require.Equal(t, cli.ExitUsage, code, stderr)
	}

	o := b.over(b.start("node", "--listen", "127.0.0.1:0"))
	o.same("audit", "--name", "TOPIC")
	o.same("audit", "--name", "TOPIC", "-o", "json", "--after", fmt.Sprint(all[1]["cursor"]))
}

// A command that changes timers has one entry, on Redis and through a node.
func TestAuditOfChangedTimers(t *testing.T) {
	b := setup(t)
	o := b.over(b.start("node", "--listen", "127.0.0.1:0"))
	for _, id := range []string{"a-1", "a-2", "a-3", "b-1"} {
		b.fine("schedule", "-t", "TOPIC", "--id", id, "--in", "1h", "--text", "x")
	}
	b.fine("reschedule", "-t", "TOPIC", "--search", "a-", "--in", "2h", "--yes")
	b.fine("cancel", "-t", "TOPIC", "--search", "a-1", "--yes")
	o.Does("run-now", "-t", "TOPIC", "--search", "a-", "--yes")
	o.Does("cancel", "-t", "TOPIC", "b-1", "a-2")
	b.fine("run-now", "-t", "TOPIC", "a-3")
	var found []string
	for _, e := range objects(t, b.fine("audit", "--name", "TOPIC", "-o", "json")) {
		found = append(found, fmt.Sprint(e["operation"], " ", e["count"], " ", e["via"], " ", e["detail"]))
	}
	require.Equal(t, []string{
		`topic.reschedule 3 process timers whose ids begin with "a-", to: in 2h0m0s`,
		`topic.cancel 1 process timers whose ids begin with "a-1"`,
		`topic.run_now 2 network timers whose ids begin with "a-"`,
		"topic.cancel 2 network ids: b-1 a-2",
		"topic.run_now 1 process ids: a-3",
	}, found)
}

func TestAuditFollows(t *testing.T) {
	b := setup(t)
	b.fine("pause", "-t", "TOPIC")
	follow := b.start("audit", "-f", "--name", "TOPIC", "-o", "json")
	require.Equal(t, "topic.pause", follow.lines(1)[0]["operation"])
	b.fine("resume", "-t", "TOPIC")
	require.Equal(t, "topic.resume", follow.lines(2)[1]["operation"])
}
