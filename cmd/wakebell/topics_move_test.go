package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
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
