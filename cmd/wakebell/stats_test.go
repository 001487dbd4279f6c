package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

var looks = regexp.MustCompile(`"at":"20[^"]*"`)

func TestStats(t *testing.T) {
	b := setup(t)
	b.dies(1)
	b.fine("schedule", "-t", "TOPIC", "--id", "p", "--in", "1h", "--count", "2")
	b.fine("schedule", "-t", "TOPIC", "--id", "due", "--at", "2021-01-02T15:04:05Z")
	b.fine("pause", "-t", "TOPIC")
	stdout := b.fine("stats", "-t", "TOPIC", "-o", "json")
	require.Greater(t, objects(t, stdout)[0]["oldest_due_s"], 1e8)
	stdout = regexp.MustCompile(`"oldest_due_s":[0-9.]+`).ReplaceAllString(stdout, `"oldest_due_s":0`)
	b.golden("stats.jsonl", looks.ReplaceAllString(stdout, `"at":"NOW"`))
	table := b.fine("stats", "-t", "TOPIC")
	require.Contains(t, table, "OLDEST DUE")
	require.Equal(t, 2, strings.Count(table, "\n"))

	// All topics with a prefix.
	b.fine("schedule", "-t", b.topic+".other")
	all := objects(t, b.fine("--prefix", b.topic, "stats", "-o", "json"))
	require.Len(t, all, 2)
	require.Equal(t, b.topic, all[0]["topic"])
	code, stdout, stderr := b.call("--prefix", b.topic, "stats", "-o", "json", "-t", ".other", "-t", ".none")
	require.Equal(t, cli.ExitNotFound, code, "one of the two is not there")
	require.Contains(t, stderr, b.topic+".none")
	given := objects(t, stdout)
	require.Equal(t, b.topic+".other", given[0]["topic"])
	require.InDelta(t, 1, given[0]["due"], 0)
	require.InDelta(t, 0, given[1]["timers"], 0)
}

func TestStatsAreWatched(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--in", "1h")
	watch := b.start("stats", "--prefix", b.topic, "--watch", "--interval", "100ms", "-o", "json")
	first := watch.lines(2)
	require.Nil(t, first[0]["timers_per_s"])
	require.InDelta(t, 0, first[1]["timers_per_s"], 0)
	b.fine("schedule", "-t", "TOPIC", "--in", "1h", "--count", "50")
	grown := func() map[string]any {
		for _, line := range objects(t, watch.out.String()) {
			if rate, ok := line["timers_per_s"].(float64); ok && rate > 0 {
				return line
			}
		}
		return nil
	}
	watch.eventually(func() bool { return grown() != nil })
	require.InDelta(t, 51, grown()["timers"], 0)
	require.InDelta(t, 0, grown()["dead_per_s"], 0)
	// A topic that was added appears.
	b.fine("schedule", "-t", b.topic+".new")
	watch.eventually(func() bool { return strings.Contains(watch.out.String(), b.topic+".new") })
	require.Equal(t, cli.ExitOK, watch.stop())
	require.Empty(t, watch.err.String())
}

// A watch continues while Redis is down for a while, and prints the error.
func TestStatsAreWatchedThroughOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr + "?max_retries=-1&read_timeout=20s"} // a stall is no outage
	watch := b.start("stats", "-t", "TOPIC", "--watch", "--interval", "100ms")
	watch.eventually(func() bool { return strings.Contains(watch.out.String(), "\n\n") })
	require.NotContains(t, watch.out.String(), "\x1b", "the output is no terminal")
	server.Stop()
	watch.says("unavailable")
	server.Restart(t)
	shown := strings.Count(watch.out.String(), "TOPIC")
	watch.eventually(func() bool { return strings.Count(watch.out.String(), "TOPIC") > shown })
	require.Equal(t, cli.ExitOK, watch.stop())

	server.Stop()
	code, _, stderr := b.call("stats", "-t", "TOPIC", "--watch")
	require.Equal(t, cli.ExitError, code, "the first read has to succeed")
	require.Contains(t, stderr, "refuses connections")
}

// On a terminal, each refresh replaces the one before.
func TestStatsRedrawTerminal(t *testing.T) {
	b := setup(t)
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, b.args([]string{"stats", "-t", "TOPIC", "--watch", "--interval", "100ms", "--color", "never"}), strings.NewReader(""), terminal, io.Discard)
	}()
	// The terminal echoes what is written to it, and shows control characters as ^X.
	seen := &buffer{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(seen, terminal) // ends when the terminal is closed
	}()
	require.Eventually(t, func() bool { return strings.Count(seen.String(), "[H^[[2J") >= 2 }, waitLimit, waitTick)
	stop()
	require.Equal(t, cli.ExitOK, <-code)
	require.NoError(t, terminal.Close())
	<-read
	require.True(t, strings.HasPrefix(seen.String(), "TOPIC"), "the first refresh removes nothing")
}

// A topic with an error does not hide the others.
func TestTopicsWithErrorsAreShown(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", b.topic+".a", "--in", "1h")
	b.fine("schedule", "-t", b.topic+".b", "--in", "1h")
	b.fine("pause", "-t", b.topic+".b")
	require.NoError(t, b.rdb.HSet(t.Context(), "timers_control:"+b.topic+".b", "lease_ttl", "soon").Err())
	b.fine("schedule", "-t", b.topic+".c", "--in", "1h")
	require.NoError(t, b.rdb.Del(t.Context(), "timers_dead:"+b.topic+".c").Err())
	require.NoError(t, b.rdb.Set(t.Context(), "timers_dead:"+b.topic+".c", "x", 0).Err())
	b.golden("topics_mangled.jsonl", b.fine("topics", "--prefix", b.topic, "-o", "json"))
	stats := objects(t, b.fine("stats", "--prefix", b.topic, "-o", "json"))
	require.Empty(t, stats[0]["fault"])
	require.Contains(t, stats[2]["fault"], "holds a string, want stream")
	require.Contains(t, b.fine("stats", "--prefix", b.topic), "lease_ttl")
}
