package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// topics move moves a topic to another Redis, and back.
func TestTopicIsMoved(t *testing.T) {
	b := setup(t)
	second := redistest.Start(t)
	there := *b
	there.rdb = second.Client(t)
	there.redis = "redis://" + there.rdb.Options().Addr
	for i := range 20 {
		b.fine("schedule", "-t", "TOPIC", "--id", fmt.Sprint(i), "--in", "1d")
	}
	b.fine("pause", "-t", "TOPIC", "--reason", "it moves")
	lines := objects(t, b.fine("topics", "move", "TOPIC", "--to", there.redis, "-o", "json"))
	last := lines[len(lines)-1]
	delete(last, "eta_s")
	require.Equal(t, map[string]any{"topic": b.topic, "moved": 20.0, "left": 0.0, "done": true, "put_back": 0.0}, last)
	require.Empty(t, objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json")))
	require.Len(t, objects(t, there.fine("ls", "-t", "TOPIC", "-o", "json")), 20)
	require.Contains(t, there.fine("topics", "--prefix", b.topic), "it moves")
	b.golden("topics_move.txt", there.fine("topics", "move", "TOPIC", "--to", b.redis, "--all"))
	require.Len(t, objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json")), 20)
	for _, side := range []*bundle{b, &there} {
		audited := objects(t, side.fine("audit", "--name", b.topic, "--operation", "topic.move", "-o", "json"))
		require.Len(t, audited, 2)
		require.EqualValues(t, 20, audited[0]["count"])
	}
	b.golden("topics_move_abort.txt", b.fine("topics", "move", "TOPIC", "--abort"))

	for want, args := range map[string][]string{
		"the source itself": {"--to", b.redis},
		"--to: not a URL":   {"--to", "elsewhere"},
		"[to abort]":        {},
		"[all abort]":       {"--all", "--abort"},
	} {
		code, _, stderr := b.call(append([]string{"topics", "move", "TOPIC"}, args...)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, stderr, want)
	}
}

// A topic of joins, or of recurring schedules with Overlap, is moved with --force alone, and a
// move that has begun goes on.
func TestTopicOfJoinsIsNotMoved(t *testing.T) {
	b := setup(t)
	there := *b
	for _, side := range []*bundle{b, &there} { // another test has joins as well
		side.rdb = redistest.Start(t).Client(t)
		side.redis = "redis://" + side.rdb.Options().Addr
	}
	other := b.topic + "-other"
	b.fine("schedule", "-t", "TOPIC", "--id", "part", "--in", "1d")
	b.fine("schedule", "-t", "TOPIC", "--id", "own", "--in", "1d", "--after", other+"/elsewhere")
	for i := range 7 {
		b.fine("schedule", "-t", other, "--id", fmt.Sprint("joined-", i), "--in", "1d", "--after", b.topic+"/part")
	}
	for _, overlap := range []string{"allow", "skip", "queue"} {
		b.fine(b.keyed("schedules", "put", overlap, "-t", "TOPIC", "--every", "1h", "--overlap", overlap)...)
	}
	refused := func() string {
		t.Helper()
		code, _, stderr := b.call(b.keyed("topics", "move", "TOPIC", "--to", there.redis)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, stderr, "--force")
		return stderr
	}
	b.golden("topics_move_refused.txt", refused())
	require.Contains(t, b.fine("get", "-t", "TOPIC", "part"), "pending", "nothing was moved")

	b.fine("cancel", "-t", other, "joined-0", "joined-1", "joined-2", "joined-3", "joined-4", "joined-5")
	require.Contains(t, refused(), `timers "joined-6" on`)
	b.fine("cancel", "-t", other, "joined-6")
	require.Contains(t, refused(), `timers "own" on`)
	b.fine("cancel", "-t", "TOPIC", "own")
	require.NotContains(t, refused(), "joins")
	b.fine(b.keyed("schedules", "pause", "skip")...)
	require.Contains(t, refused(), `moved: "queue"; pause`)
	b.fine(b.keyed("schedules", "pause", "queue")...)
	b.fine(b.keyed("topics", "move", "TOPIC", "--to", there.redis)...)

	b.fine(b.keyed("schedules", "resume", "queue")...)
	b.fine("schedule", "-t", "TOPIC", "--id", "last", "--in", "1d")
	refused()
	b.fine(b.keyed("topics", "move", "TOPIC", "--to", there.redis, "--force")...)
	require.Len(t, objects(t, there.fine("ls", "-t", "TOPIC", "-o", "json")), 2)

	b.fine("schedule", "-t", "TOPIC", "--id", "on-its-way", "--in", "1d")
	b.begun(there.Client())
	b.fine(b.keyed("topics", "move", "TOPIC", "--to", there.redis)...)
	require.Len(t, objects(t, there.fine("ls", "-t", "TOPIC", "-o", "json")), 3)
}

// begun begins to move the topic of the bundle, and leaves it.
func (b *bundle) begun(to *wakebell.Client) {
	b.t.Helper()
	for _, err := range b.Client().MoveTopic(b.t.Context(), b.topic, to, wakebelltype.MoveOptions{Force: true}) {
		require.NoError(b.t, err)
		break
	}
	busy, err := b.rdb.Exists(b.t.Context(), "timers_exchange:"+b.topic+":left").Result()
	require.NoError(b.t, err)
	require.EqualValues(b.t, 1, busy)
}
