package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
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

// A timer whose payload is too large to be read is printed without it.
func TestGetOfTimerThatIsTooLarge(t *testing.T) {
	b := setup(t)
	redistest.PutTimer(t, b.rdb, b.topic, "large", make([]byte, 16<<20+1), float64(time.Now().Add(time.Hour).Unix()))
	code, stdout, stderr := b.call("get", "-t", b.topic, "large")
	require.Equal(t, cli.ExitError, code)
	require.Regexp(t, `(?m)^state +pending$`, stdout)
	require.NotContains(t, stdout, "body")
	require.Contains(t, stderr, "payload too large")
	code, stdout, _ = b.call("get", "-t", b.topic, "large", "-o", "json")
	require.Equal(t, cli.ExitError, code)
	require.NotContains(t, objects(t, stdout)[0], "body")
	require.Equal(t, "not-due", objects(t, b.fine("explain", b.topic, "large", "-o", "json"))[0]["waits"].([]any)[0].(map[string]any)["cause"])
}
