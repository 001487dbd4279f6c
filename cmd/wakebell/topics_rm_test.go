package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// topics rm removes a topic that nothing uses, and no other.
func TestUnusedTopicsAreRemoved(t *testing.T) {
	b := setup(t)
	used := b.topic + ".used"
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "1d")
	b.fine("schedule", "-t", used, "--in", "1w")
	code, stdout, stderr := b.call("topics", "rm", "TOPIC", used)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stdout, `key "timers_timeline:`+used+`"`)
	require.Contains(t, stderr, "2 of 2 topics are in use and stay")
	b.fine("cancel", "-t", "TOPIC", "x")
	removed := objects(t, b.fine("topics", "rm", "TOPIC", "-o", "json"))
	require.Equal(t, []map[string]any{{"topic": b.topic, "removed": true, "use": ""}}, removed)
	require.Len(t, objects(t, b.fine("topics", "--prefix", b.topic, "-o", "json")), 1)
	code, _, stderr = b.call("topics", "rm", "TOPIC")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, stderr, "topic not found: 1 of 1")
}

// queue rm removes a queue that nothing uses, and no other, on Redis and through a node.
func TestUnusedQueuesAreRemoved(t *testing.T) {
	b := setup(t)
	o := b.over(b.start("node", "--listen", "127.0.0.1:0"))
	queue := []string{"--queue", b.topic}
	publish := append([]string{"queue", "publish", "--text", "x"}, queue...)
	b.fine(publish...)
	code, stdout, stderr := b.call(append([]string{"queue", "rm", "-o", "json"}, queue...)...)
	require.Equal(t, cli.ExitError, code)
	require.Equal(t, []map[string]any{{"queue": b.topic, "removed": false, "use": `key "` + b.topic + `::pending"`}}, objects(t, stdout))
	require.Contains(t, stderr, "is in use by key")
	o.fails(cli.ExitError, append([]string{"queue", "rm"}, queue...)...)
	b.fine(append([]string{"queue", "purge", "--yes"}, queue...)...)
	require.Equal(t, "removed "+b.topic+"\n", o.Does(append([]string{"queue", "rm"}, queue...)...))
	require.Empty(t, b.fine("topics", "--queues", "--prefix", b.topic, "-o", "json"))
	o.fails(cli.ExitNotFound, append([]string{"queue", "rm"}, queue...)...)
	removed := objects(t, b.fine("audit", "--name", b.topic, "--operation", "queue.remove", "-o", "json"))
	require.Len(t, removed, 1)
	require.Equal(t, "network", removed[0]["via"])

	b.fine(publish...) // by another process, so it is listed again
	b.fine(append([]string{"queue", "purge", "--yes"}, queue...)...)
	node := b.start(append([]string{"node"}, queue...)...)
	node.says("node runs")
	hint := b.topic + "::wakebell:hint"
	require.Eventually(t, func() bool {
		n, err := b.rdb.PubSubNumSub(t.Context(), hint).Result()
		return err == nil && n[hint] == 1
	}, waitLimit, waitTick)
	_, _, stderr = b.call(append([]string{"queue", "rm"}, queue...)...)
	require.Contains(t, stderr, "is in use by 1 nodes")
}

// topics shards divides a topic without timers, and shows the number.
func TestTopicIsDivided(t *testing.T) {
	b := setup(t)
	code, stdout, stderr := b.call("topics", "shards", "TOPIC")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, b.topic)
	b.fine("schedule", "-t", "TOPIC", "--id", "whole", "--in", "1d")
	require.Regexp(t, `shards +1\n`, b.fine("topics", "shards", "TOPIC"))
	b.fine("cancel", "-t", "TOPIC", "whole")
	b.fine("topics", "shards", "TOPIC", "4")
	require.Regexp(t, `shards +4\n`, b.fine("topics", "shards", "TOPIC"))
	b.fine("topics", "shards", "TOPIC", "4")
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "1d")
	shown := objects(t, b.fine("topics", "shards", "TOPIC", "-o", "json"))[0]
	require.NotEmpty(t, shown["since"])
	delete(shown, "since")
	require.Equal(t, map[string]any{"topic": b.topic, "shards": 4.0, "next": 0.0, "before": 1.0, "moving": true}, shown)
	code, _, stderr = b.call("topics", "shards", "TOPIC", "8")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "which keeps its 4: its last change has not ended")
	code, _, _ = b.call("topics", "shards", "TOPIC", "many")
	require.Equal(t, cli.ExitUsage, code)
	listed := objects(t, b.fine("topics", "--prefix", b.topic, "-o", "json"))
	require.Len(t, listed, 1)
	require.EqualValues(t, 4, listed[0]["shards"])
	require.Contains(t, b.fine("topics", "--prefix", b.topic), "SHARDS")
}

// topics reshard continues a resharding that another process has begun.
func TestTopicIsResharded(t *testing.T) {
	b := setup(t)
	for i := range 20 {
		b.fine("schedule", "-t", "TOPIC", "--id", fmt.Sprint(i), "--in", "1d")
	}
	const begun = `{"shards":4,"from":1,"moving":true,"live":true,"since":1}`
	require.NoError(t, b.rdb.HSet(t.Context(), "timers_shards", b.topic, begun).Err())
	require.NoError(t, b.rdb.HIncrBy(t.Context(), "timers_shards", "", 1).Err())
	code, _, stderr := b.call("topics", "reshard", "TOPIC", "--shards", "8")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "it is being changed to 4; finish that first")
	lines := objects(t, b.fine("topics", "reshard", "TOPIC", "--shards", "4", "-o", "json"))
	last := lines[len(lines)-1]
	delete(last, "since")
	delete(last, "eta_s")
	require.Equal(t, map[string]any{
		"topic": b.topic, "shards": 4.0, "next": 0.0, "before": 1.0, "moving": false, "moved": 20.0, "left": 0.0, "done": true,
	}, last)
	require.Regexp(t, `shards +4\n`, b.fine("topics", "reshard", "TOPIC", "--shards", "4"))
	require.Len(t, objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json")), 20)
	left, err := b.rdb.Exists(t.Context(), "timers_timeline:"+b.topic).Result()
	require.NoError(t, err)
	require.Zero(t, left)
}

// A command on a topic without keys and nodes suggests the known topic with the nearest
// name.
func TestMistypedTopicIsSuggested(t *testing.T) {
	b := setup(t)
	_, _, stderr := b.call("schedule", "-t", b.topic+"-invoices", "--in", "1h")
	require.Equal(t, `wakebell: warning: topic "`+b.topic+`-invoices" has no timers, and no node handles it`+"\n", stderr)
	for _, command := range [][]string{
		{"pause", "--reason", "x"}, {"retune", "--max-attempts", "2"}, {"schedule", "--in", "1h"},
	} {
		typo := b.topic + "-" + command[0] + "-invocies"
		known := b.topic + "-" + command[0] + "-invoices"
		b.fine("schedule", "-t", known, "--in", "1h")
		_, _, stderr := b.call(append(command, "-t", typo)...)
		require.Equal(t, `wakebell: warning: topic "`+typo+`" has no timers, and no node handles it; did you mean "`+known+`"?`+"\n", stderr)
		code, _, stderr := b.call(append(command, "-t", known)...)
		require.Zero(t, code)
		require.Empty(t, stderr, "a topic with timers is in use")
	}
	node := b.start("node", "-t", "TOPIC")
	node.says("node runs")
	require.Eventually(t, func() bool { return b.nodes() == 1 }, waitLimit, waitTick)
	_, _, stderr = b.call("schedule", "-t", "TOPIC", "--in", "1h")
	require.Empty(t, stderr, "a topic with a node is in use")
}

// nodes returns how many processes listen to the hints of the topic.
func (b *bundle) nodes() int64 {
	n, err := b.rdb.PubSubNumSub(b.t.Context(), "timers_hint:"+b.topic).Result()
	require.NoError(b.t, err)
	return n["timers_hint:"+b.topic]
}

func TestQueuesAreListed(t *testing.T) {
	b := setup(t)
	b.fine("queue", "publish", "--queue", "TOPIC", "--text", "x")
	b.fine("queue", "publish", "--queue", b.topic+"-own", "--separator", "//", "--text", "x")
	queues := objects(t, b.fine("topics", "--queues", "--prefix", b.topic, "-o", "json"))
	require.Len(t, queues, 2)
	require.Equal(t, "//", queues[1]["separator"])
	require.EqualValues(t, 1, queues[1]["pending"])
	require.Len(t, objects(t, b.fine("topics", "--queues", "--prefix", b.topic, "--limit", "1", "-o", "json")), 1)
	require.Len(t, objects(t, b.fine("stats", "--queues", "--prefix", b.topic, "-o", "json")), 2)
	require.Contains(t, b.fine("topics", "--prefix", b.topic), "QUEUE")
	require.Contains(t, b.fine("stats", "--prefix", b.topic), "QUEUE")
	require.NoError(t, b.rdb.Del(t.Context(), b.topic+"::pending").Err())
	require.NoError(t, b.rdb.Set(t.Context(), b.topic+"::pending", "x", 0).Err())
	code, stdout, _ := b.call("doctor", "--prefix", b.topic)
	require.Equal(t, cli.ExitError, code)
	require.Regexp(t, `\nbad      queue        `+b.topic+`: .*pending`, stdout)
	require.Regexp(t, `\n\d+ checks: 2 bad, 0 unknown, \d+ warn, \d+ good; --all shows what is good\n$`, stdout)
}
