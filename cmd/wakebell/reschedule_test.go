package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReschedule(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h", "--text", "hi")
	b.golden("reschedule.jsonl", b.fine("reschedule", "-t", "TOPIC", "x", "--at", "2031-01-02T15:04:05Z", "-o", "json"))
	b.golden("reschedule.txt", b.fine("reschedule", "-t", "TOPIC", "x", "--at", "2032-01-02T15:04:05Z"))
	shown := b.fine("get", "-t", "TOPIC", "x")
	require.Contains(t, shown, "2032-01-02T15:04:05Z")
	require.Contains(t, shown, `"hi"`)
	require.Contains(t, b.fine("reschedule", "-t", "TOPIC", "x", "--in", "0s"), "moved")
	require.Contains(t, b.fine("topics", "--prefix", b.topic, "-o", "json"), `"due":1,`)
}
