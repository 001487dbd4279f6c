package wakebelltest_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestIdleTopicTakesFewCommands counts what nodes ask Redis while nothing is due. Real time
// passes with it and with nothing else: a month takes a second, with
// each option and with all of them.
func TestIdleTopicTakesFewCommands(t *testing.T) {
	t.Parallel()
	options := map[string]wakebell.HandlerOption{
		"Adaptive":       wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{}),
		"Breaker":        wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5}),
		"History":        wakebell.History(wakebelltype.HistoryAll),
		"MaxInFlight":    wakebell.MaxInFlight(10),
		"PerKey":         wakebell.PerKey(1),
		"RateLimit":      wakebell.RateLimit(10, time.Second, 10),
		"RateLimitByKey": wakebell.RateLimitByKey(10, time.Second, 10),
		"Weight":         wakebell.Weight("group", 1),
	}
	all := slices.Collect(maps.Values(options))
	const most = 100 // an hour, with those of scripts; a script each half a minute would be a thousand
	for name, option := range options {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Less(t, commandsAnHour(t, []wakebell.HandlerOption{option}), most)
		})
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		require.Less(t, commandsAnHour(t, all), most)
	})
}

// commandsAnHour returns how many commands a topic with a pending timer takes in an hour.
func commandsAnHour(t *testing.T, options []wakebell.HandlerOption) (commands int) {
	t.Helper()
	const span = 5 * 24 * time.Hour
	topic := wakebell.NewTopic[string]("notes")
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, options...),
	}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		_, err := topic.Schedule(t.Context(), w.Client(), "", wakebell.Key("k"), wakebell.In(span+2*time.Hour))
		require.NoError(t, err)
		w.Advance(time.Hour) // what is done once
		before := processed(t, w)
		w.Advance(span)
		commands = (processed(t, w) - before) / int(span/time.Hour)
	})
	return commands
}

// processed returns how many commands the server has executed, with those of scripts.
func processed(t *testing.T, w *wakebelltest.World) int {
	t.Helper()
	info, err := w.Redis().Info(t.Context(), "stats").Result()
	require.NoError(t, err)
	_, count, _ := strings.Cut(info, "total_commands_processed:")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	require.NoError(t, err)
	return n
}
