package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// repair says first what it restores of a deleted key, and restores it with --yes.
func TestTopicIsRepaired(t *testing.T) {
	b := setup(t)
	const n = 120
	for i := range n {
		args := []string{"schedule", "-t", "TOPIC", "--id", fmt.Sprint(i), "--in", "1d"}
		if i%2 == 0 {
			args = append(args, "--key", fmt.Sprint("k", i))
		}
		b.fine(args...)
	}
	timeline, payloads := "timers_timeline:"+b.topic, "timers_payloads:"+b.topic
	require.NoError(t, b.rdb.Del(t.Context(), timeline).Err())
	require.Contains(t, objects(t, b.fine("topics", "-o", "json", "--prefix", b.topic))[0]["fault"], "120 of 120 payloads have no timer")
	require.Contains(t, b.fine("repair", "TOPIC"), "would restore 120 timers from their payloads, 60 of them at known instants")
	require.Zero(t, b.rdb.Exists(t.Context(), timeline).Val())

	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	line := objects(t, b.fine("repair", "TOPIC", "--at", at.Format(time.RFC3339), "--yes", "-o", "json"))[0]
	delete(line, "examined")
	require.Equal(t, map[string]any{
		"topic": b.topic, "applied": true, "restored": 120.0, "known": 60.0, "missing": 0.0, "dropped": 0.0, "removed": 0.0,
	}, line)
	require.Len(t, objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json", "--limit", "0")), n)
	require.Empty(t, objects(t, b.fine("topics", "-o", "json", "--prefix", b.topic))[0]["fault"])
	require.EqualValues(t, n/2, b.rdb.ZCount(t.Context(), timeline, fmt.Sprint(at.Unix()), fmt.Sprint(at.Unix())).Val())

	require.NoError(t, b.rdb.Del(t.Context(), payloads).Err())
	require.Contains(t, b.fine("repair", "TOPIC", "--drop-missing", "--yes"), "drop 120 of 120 timers without a payload")
	require.Len(t, objects(t, b.fine("dead", "ls", "-t", "TOPIC", "--reason", "payload missing", "-o", "json", "--limit", "0")), n)
	audited := objects(t, b.fine("audit", "--name", b.topic, "--operation", "topic.repair", "-o", "json"))
	require.NotEmpty(t, audited)

	code, _, stderr := b.call("repair", "TOPIC", "--at", "tomorrow")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "--at")
}
