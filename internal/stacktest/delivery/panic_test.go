package delivery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestPanicsCountTowardsMaxAttempts lets a handler panic each time: after MaxAttempts calls, a
// lease apart, its timer is a dead letter. Each attempt has the place of the panic at once.
func TestPanicsCountTowardsMaxAttempts(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			panic(errors.New("no such account"))
		}, wakebell.MaxAttempts(3), wakebell.LeaseTTL(10*time.Second), wakebell.History(wakebelltype.HistoryFailures)),
	}}
	const reason = `^panic: no such account at delivery/panic_test\.go:\d+$`
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
		began := time.Now()
		_, err := topic.Schedule(t.Context(), w.Client(), "", wakebell.ID("x"))
		require.NoError(t, err)
		for attempt := range 2 {
			w.Advance(time.Second)
			info, _, err := w.Client().Get(t.Context(), "t", "x")
			require.NoError(t, err)
			require.Equal(t, wakebell.StateRetrying, info.State)
			require.Equal(t, attempt+1, info.Failures)
			require.Regexp(t, reason, info.LastError)
			require.WithinDuration(t, began.Add(time.Duration(attempt+1)*10*time.Second), info.Due, 100*time.Millisecond)
			w.Advance(9500 * time.Millisecond)
		}
		letters := w.Dead("t")
		require.Len(t, letters, 1)
		require.Regexp(t, reason, letters[0].Reason)
		require.Equal(t, 3, letters[0].Attempts)
		require.Equal(t, 3, letters[0].Failures)
		var outcomes []wakebelltype.EventKind
		for a, err := range w.Client().History(t.Context(), "t", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
			require.NoError(t, err)
			require.Regexp(t, reason, a.Error)
			outcomes = append(outcomes, a.Outcome)
		}
		require.ElementsMatch(t, []wakebelltype.EventKind{"crashed", "crashed", "dead"}, outcomes)
	})
}

// TestPanicBackoffRetriesLikeError does not wait for the lease.
func TestPanicBackoffRetriesLikeError(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			if timer.Attempt == 1 {
				panic("oops")
			}
			return nil
		}, wakebell.PanicBackoff(), wakebell.RetryBackoff(2*time.Second, 2*time.Second), wakebell.LeaseTTL(time.Hour)),
	}}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
		_, err := topic.Schedule(t.Context(), w.Client(), "", wakebell.ID("x"))
		require.NoError(t, err)
		w.Advance(3 * time.Second)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("t", "x").Outcome)
	})
}
