package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

func TestGet(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--at", "2031-01-02T15:04:05Z", "--json", `{"a": "\u001b"}`,
		"--header", "b=2", "--header", "a=\x1b[2J", "--correlation-id", "c")
	b.golden("get.txt", b.fine("get", "-t", "TOPIC", "x"))
	b.golden("get.json", b.fine("get", "-t", "TOPIC", "x", "-o", "json"))
}

func TestGetShowsJoin(t *testing.T) {
	b := setup(t)
	c := b.Client()
	work := wakebell.NewTopic[string](b.topic + "-work")
	reports := wakebell.NewTopic[string](b.topic)
	t.Cleanup(func() { _, _ = c.CancelJoin(context.Background(), b.topic, "r") })
	_, err := c.Schedule(t.Context(), wakebell.Batch(work.Draft("", wakebell.ID("a"), wakebell.In(time.Hour)), work.Draft("", wakebell.ID("b"), wakebell.In(time.Hour))).
		Then(reports.Draft("", wakebell.ID("r"), wakebell.In(2*time.Hour)))...)
	require.NoError(t, err)
	require.Contains(t, b.fine("get", "-t", b.topic, "r"), "0 of 2 parts have ended: 0 done, 0 dead, 0 cancelled, 0 missing")
	require.Contains(t, b.fine("get", "-t", b.topic, "r", "-o", "json"), `"join":{"open":false,"parts":2,"done":0,"dead":0,"cancelled":0,"missing":0}`)
}
