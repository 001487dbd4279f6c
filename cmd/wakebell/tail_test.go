package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestTailShowsLastDeadLetters(t *testing.T) {
	b := setup(t)
	code, stdout, _ := b.call("tail", "-t", "TOPIC")
	require.Equal(t, cli.ExitNotFound, code)
	require.Empty(t, stdout)
	entries := b.dies(3)
	lines := objects(t, b.fine("tail", "-t", "TOPIC", "-n", "2", "-o", "json"))
	require.Len(t, lines, 2)
	for i, line := range lines {
		require.NotEmpty(t, line["at"])
		require.Equal(t, entries[i+1], line["entry"])
	}
	shown := b.fine("tail", "-t", "TOPIC")
	require.Equal(t, 3, strings.Count(shown, "\n"))
	require.Contains(t, shown, "dead        x-0  attempt 1, entry "+entries[0]+": exit status 65: no: x-0\n")
	require.Empty(t, b.fine("tail", "-t", "TOPIC", "-n", "0"))
}

var (
	happenings = regexp.MustCompile(`"at":"20[^"]*"`)
	taken      = regexp.MustCompile(`"took_ms":[\d.]+`)
	nodes      = regexp.MustCompile(`"node":"[^"]+"`)
)

// The table and the JSON of the same events: the table is escaped, JSON has all data.
func TestTailFollows(t *testing.T) {
	b := setup(t)
	b.dies(2)
	node := b.start("node", "-t", "TOPIC", "--exec", `test "$WAKEBELL_ID" != bad || { printf 'no \033[31m' >&2; exit 65; }`)
	node.says("node runs")
	people := b.start("tail", "-t", "TOPIC", "-f", "-n", "0")
	people.eventually(func() bool { return strings.Contains(people.out.String(), "node ") })
	machine := b.start("tail", "-t", "TOPIC", "-f", "-n", "1", "-o", "json")
	machine.lines(2)
	for i, id := range []string{"good", "bad"} {
		b.fine("schedule", "-t", "TOPIC", "--id", id)
		machine.lines(2 * (i + 2))
		people.eventually(func() bool { return strings.Count(people.out.String(), "\n") == 2*i+3 })
	}
	require.Zero(t, machine.stop(), machine.err)
	require.Zero(t, people.stop(), people.err)
	lines := happenings.ReplaceAllString(timeless(machine.out.String()), `"at":"NOW"`)
	lines = taken.ReplaceAllString(lines, `"took_ms":0`)
	b.golden("tail.jsonl", nodes.ReplaceAllString(lines, `"node":"NODE"`))
	var shown []string
	for line := range strings.Lines(people.out.String()) {
		shown = append(shown, strings.Join(strings.Fields(line)[1:3], " "))
	}
	require.Equal(t, []string{"node -", "delivered good", "acked good", "delivered bad", "dead bad"}, shown)
	require.NotContains(t, people.out.String(), "\x1b")
	require.Contains(t, people.out.String(), `no \x1b[31m`)
}

// Without a topic, or with several, tail has the dead letters and events of all of them.
func TestTailOfSeveralTopics(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := &bundle{t, "t", "redis://" + server.Addr, server.Client(t)}
	require.Empty(t, b.fine("tail"))
	require.Empty(t, b.fine("tail", "-f"), "there is no topic to follow")
	node := b.start("node", "-t", "a", "-t", "b", "--exec", `test "$WAKEBELL_ID" != bad || exit 65`)
	node.says("node runs")
	for _, topic := range []string{"a", "b"} {
		b.fine("schedule", "-t", topic, "--id", "bad")
	}
	require.Eventually(t, func() bool { return strings.Count(b.fine("tail"), "\n") == 2 }, time.Minute, 50*time.Millisecond)
	require.Regexp(t, `(?m)^20\S+  dead        a  bad  attempt 1`, b.fine("tail"))
	require.Len(t, objects(t, b.fine("tail", "-o", "json", "-n", "1")), 1)
	require.Empty(t, b.fine("tail", "-n", "0"))
	code, stdout, stderr := b.call("tail", "-t", "a", "-t", "absent")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, stdout, "bad")
	require.Contains(t, stderr, "absent")

	for _, chosen := range [][]string{nil, {"-t", "a", "-t", "b"}} {
		watch := b.start(append([]string{"tail", "-f"}, chosen...)...)
		watch.eventually(func() bool { return strings.Count(watch.out.String(), "dead ") == 2 })
		for _, topic := range []string{"a", "b"} {
			b.fine("schedule", "-t", topic, "--id", "good")
			watch.eventually(func() bool { return strings.Contains(watch.out.String(), "acked       "+topic+"  good") })
		}
		require.Zero(t, watch.stop(), watch.err)
	}
}

// Tail reconnects after a lost connection and prints that it missed events.
func TestTailSurvivesRestartOfRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := &bundle{t, "t", "redis://" + server.Addr, server.Client(t)}
	watch := b.start("tail", "-t", "TOPIC", "-f")
	node := b.start("node", "-t", "TOPIC")
	node.says("node runs")
	watch.eventually(func() bool { return strings.Contains(watch.out.String(), "node ") })
	server.Restart(t)
	watch.says("the connection was lost")
	watch.eventually(func() bool { return strings.Count(watch.out.String(), "node ") >= 2 })
	require.Zero(t, watch.stop())
}
