package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestTopics(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--count", "3", "--in", "1h")
	b.fine("schedule", "-t", "TOPIC")
	peer := b.topic + ".peer" // only a Python peer knows it
	require.NoError(t, b.rdb.ZAdd(t.Context(), "timers_timeline:"+peer, redis.Z{Score: 4e9, Member: "x"}).Err())
	waits := regexp.MustCompile(`"oldest_due_s":[0-9.e-]+`)
	list := func(args ...string) string {
		lines := b.fine(append([]string{"topics", "--prefix", b.topic, "-o", "json"}, args...)...)
		return waits.ReplaceAllString(lines, `"oldest_due_s":0`)
	}
	b.golden("topics.jsonl", list())
	b.golden("topics_discover.jsonl", list("--discover"))
	b.golden("topics_discover.jsonl", list()) // what was discovered is listed
	require.Contains(t, b.fine("topics"), b.topic)
}

// TestTopicsAreSortedAndFiltered has topics with due timers and with dead letters.
func TestTopicsAreSortedAndFiltered(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t) // what is due stays nowhere else
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr, rdb: server.Client(t)}
	for name, count := range map[string]string{"a": "1", "b": "3", "c": "2"} {
		b.fine("schedule", "-t", b.topic+name, "--count", count)
	}
	b.fine("schedule", "-t", b.topic+"d", "--in", "1h")
	require.NoError(t, b.rdb.ZAdd(t.Context(), "timers_timeline:"+b.topic+"c", redis.Z{Score: 1e9, Member: "late"}).Err())
	list := func(args ...string) (names []string) {
		for _, line := range objects(t, b.fine(append([]string{"topics", "--prefix", b.topic, "-o", "json"}, args...)...)) {
			names = append(names, strings.TrimPrefix(line["topic"].(string), b.topic))
		}
		return names
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, list())
	require.Equal(t, []string{"b", "c", "a", "d"}, list("--sort", "due"))
	require.Equal(t, []string{"c"}, list("--sort", "oldest", "--limit", "1"))
	require.Equal(t, []string{"c"}, list("--only", "problems"))
	require.Contains(t, b.fine("topics", "--prefix", b.topic, "--sort", "rate"), "TIMERS")
	code, _, stderr := b.call("topics", "--sort", "size")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "want one of name, due, oldest, late, dead, rate")
	code, _, _ = b.call("topics", "--sort", "due", "--after", "x")
	require.Equal(t, cli.ExitUsage, code)
}

// TestTopicsWithoutMaster kills the master of a Cluster that has the list of topics.
func TestTopicsWithoutMaster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t, "--cluster-require-full-coverage", "no")
	rdb := masters.Client(t)
	list, err := rdb.MasterForKey(t.Context(), "timers_topics")
	require.NoError(t, err)
	down := list.Options().Addr
	b := &bundle{t: t, topic: "t"}
	for _, m := range masters {
		if m.Addr != down {
			b.redis = "redis+cluster://" + m.Addr
		}
	}
	var left []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		b.fine("schedule", "-t", name, "--in", "1h")
		master, err := rdb.MasterForKey(t.Context(), "timers_timeline:{"+name+"}")
		require.NoError(t, err)
		if master.Options().Addr != down {
			left = append(left, name)
		}
	}
	for _, m := range masters {
		if m.Addr == down {
			m.Kill()
		}
	}
	for _, command := range []string{"topics", "stats"} {
		code, stdout, stderr := b.call(command, "-o", "json")
		require.Equal(t, cli.ExitError, code, command)
		require.Contains(t, stderr, "timers_topics", command)
		var shown []string
		for _, line := range objects(t, stdout) {
			shown = append(shown, line["topic"].(string))
		}
		require.Equal(t, left, shown, command)
	}
}

// TestTopicsShowLackOfNode schedules timers that were due long ago.
func TestTopicsShowLackOfNode(t *testing.T) {
	b := setup(t)
	unattended := func() any {
		return objects(t, b.fine("topics", "--prefix", b.topic, "-o", "json"))[0]["unattended"]
	}
	b.fine("schedule", "-t", "TOPIC", "--id", "later", "--in", "1h")
	require.Empty(t, unattended())
	b.fine("schedule", "-t", "TOPIC", "--id", "late", "--at", "2026-01-01T00:00:00Z")
	require.Contains(t, unattended(), "no node, and due timers wait for ")
	require.Contains(t, b.fine("topics", "--prefix", b.topic), "no node, and due timers wait for ")
	b.fine("pause", "-t", "TOPIC")
	require.Empty(t, unattended(), "a pause is meant")
	b.fine("resume", "-t", "TOPIC")
	node := b.start("node", "-t", "TOPIC")
	node.says("node runs")
	require.Equal(t, "late", node.lines(1)[0]["id"])
	require.Empty(t, unattended())
}
