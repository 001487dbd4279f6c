package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestNodePrintsDeliveries(t *testing.T) {
	b := setup(t)
	schedule := func(args ...string) {
		b.fine(append([]string{"schedule", "-t", "TOPIC", "--at", "2021-01-02T15:04:05.25Z"}, args...)...)
	}
	schedule("--id", "1-json", "--json", `{"b": [1, "<&>"], "a": null}`, "--header", "k=v", "--correlation-id", "c")
	schedule("--id", "2-text", "--text", "a\nb")
	schedule("--id", "3-none")
	schedule("--id", "4-bytes", "--hex", "00ff", "--content-type", "image/png")
	node := b.start("node", "-t", "TOPIC", "--max-concurrent", "1")
	lines := node.lines(4)
	for _, line := range lines {
		delivered, err := time.Parse(time.RFC3339Nano, line["delivered_at"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), delivered, time.Minute)
		late := delivered.Sub(time.Date(2021, 1, 2, 15, 4, 5, 250_000_000, time.UTC))
		require.InDelta(t, late.Seconds()*1000, line["lateness_ms"].(float64), 1)
	}
	require.Zero(t, node.stop())
	b.golden("node.jsonl", timeless(node.out.String()))
	require.Zero(t, b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val(), "all timers are acked")
}

func TestNodeDoesNotMixOutputLines(t *testing.T) {
	b := setup(t)
	const n = 500
	b.fine("schedule", "-t", "TOPIC", "--count", strconv.Itoa(n), "--text", string(bytes.Repeat([]byte("x"), 5000)))
	node := b.start("node", "-t", "TOPIC", "--max-concurrent", "100")
	ids := map[any]bool{}
	for _, line := range node.lines(n) {
		ids[line["id"]] = true
	}
	require.Len(t, ids, n)
}

func TestNodeHandlesSeveralTopicsUnderPrefix(t *testing.T) {
	b := setup(t)
	prefix := b.topic + "/"
	b.fine("schedule", "--prefix", prefix, "-t", "a")
	b.fine("schedule", "--prefix", prefix, "-t", "b")
	node := b.start("node", "--prefix", prefix, "-t", "a", "-t", "b")
	var topics []any
	for _, line := range node.lines(2) {
		topics = append(topics, line["topic"])
	}
	require.ElementsMatch(t, []any{prefix + "a", prefix + "b"}, topics)
}

func TestNodeEndsWithoutSettlingIfStdoutFails(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	full := writer(func([]byte) (int, error) { return 0, errors.New("no space left") })
	var stderr bytes.Buffer
	code := run(t.Context(), b.args([]string{"node", "-t", "TOPIC", "--retry-initial", "1h"}), nil, full, &stderr)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr.String(), "wakebell: write to stdout: no space left")
	info, _, err := b.Client().Get(t.Context(), b.topic, "x")
	require.NoError(t, err)
	require.Equal(t, wakebell.StateRetrying, info.State)
	require.Equal(t, 1, info.Failures)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestNodeLogs(t *testing.T) {
	b := setup(t)
	node := b.start("node", "-t", "TOPIC", "--log-format", "json")
	node.says("node runs")
	require.Zero(t, node.stop())
	for _, line := range objects(t, node.err.String()) {
		require.Equal(t, "INFO", line["level"], "%v; protoactor must not log", line)
	}
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	speaking := b.start("node", "-t", "TOPIC", "--log-format", "json", "--exec", "echo charged; echo odd >&2")
	speaking.lines(1)
	speaking.says("odd")
	speaking.says("charged")
	require.Zero(t, speaking.stop())
	said := map[any]any{}
	for _, line := range objects(t, speaking.err.String()) {
		if line["msg"] == "output of the command" {
			require.Equal(t, "x", line["id"])
			require.Equal(t, b.topic, line["topic"])
			said[line["stream"]] = line["line"]
		}
	}
	require.Equal(t, map[any]any{"stdout": "charged", "stderr": "odd"}, said)
	quiet := b.start("node", "-t", "TOPIC", "--log-level", "error", "--exec", "exit 65")
	b.fine("schedule", "-t", "TOPIC")
	quiet.lines(1)
	require.Zero(t, quiet.stop())
	require.Empty(t, quiet.err.String())
	loud := b.start("node", "-t", "TOPIC", "--log-level", "debug")
	loud.says("actor system started")
	require.Zero(t, loud.stop())
}

func TestNodeWaitsForRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	b := &bundle{t: t, topic: "x", redis: "redis://" + server.Addr}
	code, _, stderr := b.call("node", "-t", "x", "--wait-for-redis", "0s")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "unavailable")

	node := b.start("node", "-t", "x") // no flag is needed
	node.says("redis is unavailable; waiting for it")
	server.Restart(t)
	node.says("node runs")
	require.Zero(t, node.stop())

	server.Stop()
	waiting := b.start("node", "-t", "x")
	require.Zero(t, waiting.stop(), "a signal while the node waits for Redis is not an error")
}

func TestNodeRetriesWithGivenFlags(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	node := b.start("node", "-t", "TOPIC", "--exec", "exit 1", "--max-attempts", "3",
		"--retry-initial", "10ms", "--retry-max", "20ms", "--polling-interval", "5ms", "--max-polling-interval", "10ms")
	for i, line := range node.lines(3) {
		require.InDelta(t, i+1, line["attempt"], 0)
	}
	node.says("timer dead-lettered")
	require.Zero(t, node.stop())
	dead := objects(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))
	require.Equal(t, "command: exit status 1", dead[0]["reason"])
}

func TestNodeDiscardsAndLimitsDeadLetters(t *testing.T) {
	b := setup(t)
	dead := func() int { return len(objects(t, b.fine("dead", "ls", "-t", "TOPIC", "--limit", "0", "-o", "json"))) }
	b.fine("schedule", "-t", "TOPIC", "--count", "3")
	node := b.start("node", "-t", "TOPIC", "--exec", "exit 65", "--discard-rejected")
	node.lines(3)
	require.Zero(t, node.stop())
	require.Zero(t, dead())

	b.fine("schedule", "-t", "TOPIC", "--count", "220")
	node = b.start("node", "-t", "TOPIC", "--exec", "exit 65", "--dead-letter-cap", "2", "--max-concurrent", "20")
	node.lines(220)
	require.Zero(t, node.stop())
	require.Less(t, dead(), 150)
}

func TestNodeEndsOldLeases(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	node := b.start("node", "-t", "TOPIC", "--exec", "exec sleep 1000", "--lease-ttl", "1s", "--max-lease-age", "200ms", "--retry-initial", "1h")
	node.eventually(func() bool {
		info, _, err := b.Client().Get(t.Context(), b.topic, "x")
		return err == nil && info.Failures == 1
	})
	require.Zero(t, node.stop())
}

func TestEmbeddedNodeStartsAndStops(t *testing.T) {
	b := setup(t)
	node := b.start("node", "-t", "TOPIC", "--redis", "embedded")
	node.says("node runs")
	require.Zero(t, node.stop())
}

func TestSilentRedisDoesNotHoldUpSignal(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	b := &bundle{t: t, redis: "redis://" + silent.Addr().String()}
	var out, errs bytes.Buffer
	began := time.Now()
	code := run(ctx, b.args([]string{"ls", "-t", "x"}), nil, &out, &errs)
	require.Equal(t, cli.ExitError, code)
	require.Less(t, time.Since(began), 10*time.Second)
}
