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
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	panicTopic = wakebell.NewTopic[string]("t")
	panicQueue = queue.New[string]("t")
	errAccount = errors.New("no such account")
)

// panicReason is the reason of a failure by errAccount.
const panicReason = `^panic: no such account at delivery/panic_test\.go:\d+$`

// panics returns the handlers of a topic or a queue, alone and in batches, that panic as often
// as the attempt is below until.
func panics(until int, opts ...wakebell.CommonOption) map[string]wakebell.Handler {
	one := func(_ context.Context, timer wakebell.Timer[string]) error {
		if timer.Attempt < until {
			panic(errAccount)
		}
		return nil
	}
	all := func(ctx context.Context, timers []wakebell.Timer[string]) (err error) {
		for _, timer := range timers {
			err = errors.Join(err, one(ctx, timer))
		}
		return err
	}
	var ofTopic []wakebell.HandlerOption
	var ofQueue []wakebell.QueueHandlerOption
	for _, o := range opts {
		ofTopic, ofQueue = append(ofTopic, o), append(ofQueue, o)
	}
	return map[string]wakebell.Handler{
		"topic":               wakebell.Handle(panicTopic, one, ofTopic...),
		"batches":             wakebell.HandleBatch(panicTopic, all, ofTopic...),
		"shards":              wakebell.Handle(panicTopic, one, append(ofTopic, wakebell.Shards(4))...),
		"keys":                wakebell.Handle(panicTopic, one, append(ofTopic, wakebell.PerKey(1), wakebell.MaxInFlight(1))...),
		"queue":               wakebell.HandleQueue(panicQueue, one, ofQueue...),
		"messages in batches": wakebell.HandleQueueBatch(panicQueue, all, ofQueue...),
	}
}

// schedulePanic schedules or publishes what the handler panics at.
func schedulePanic(t *testing.T, w *wakebelltest.World, kind string) {
	t.Helper()
	var err error
	if kind == "queue" || kind == "messages in batches" {
		_, err = panicQueue.Publish(t.Context(), w.Client().Queues(), "body")
	} else {
		_, err = panicTopic.Schedule(t.Context(), w.Client(), "body", wakebell.ID("x"), wakebell.Key("k"))
	}
	require.NoError(t, err)
}

// TestPanicsCountTowardsMaxAttempts lets a handler panic each time: after MaxAttempts calls, a
// lease apart, its timer is a dead letter. Each attempt has the place of the panic at once.
func TestPanicsCountTowardsMaxAttempts(t *testing.T) {
	t.Parallel()
	for kind, handler := range panics(1000, wakebell.MaxAttempts(3), wakebell.LeaseTTL(10*time.Second), wakebell.History(wakebelltype.HistoryFailures)) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := wakebell.Config{Handlers: []wakebell.Handler{handler}}
			wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
				began := time.Now()
				schedulePanic(t, w, kind)
				w.Advance(9 * time.Second)
				require.Len(t, w.Delivered("t"), 1, "its lease has not ended")
				w.Advance(20 * time.Second)
				deliveries := w.Delivered("t")
				require.Len(t, deliveries, 3)
				for n, d := range deliveries {
					require.WithinDuration(t, began.Add(time.Duration(n)*10*time.Second), d.At, 100*time.Millisecond)
				}
				require.Equal(t, wakebelltest.Crashed, deliveries[0].Outcome)
				require.Equal(t, wakebelltest.Dead, deliveries[2].Outcome)
				w.Advance(time.Minute)
				require.Len(t, w.Delivered("t"), 3)
			})
		})
	}
}

// TestPanicIsKnownAtOnce reads the state of a timer before its lease would have ended, and its
// history and dead letter.
func TestPanicIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	handlers := panics(1000, wakebell.MaxAttempts(2), wakebell.LeaseTTL(10*time.Second), wakebell.History(wakebelltype.HistoryFailures))
	for _, kind := range []string{"topic", "batches", "shards", "keys"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := wakebell.Config{Handlers: []wakebell.Handler{handlers[kind]}}
			wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
				began := time.Now()
				schedulePanic(t, w, kind)
				w.Advance(time.Second)
				info, _, err := w.Client().Get(t.Context(), "t", "x")
				require.NoError(t, err)
				require.Equal(t, wakebell.StateRetrying, info.State)
				require.Equal(t, 1, info.Failures)
				require.Regexp(t, panicReason, info.LastError)
				require.WithinDuration(t, began.Add(10*time.Second), info.Due, 100*time.Millisecond)
				w.Advance(10 * time.Second)
				letters := w.Dead("t")
				require.Len(t, letters, 1)
				require.Regexp(t, panicReason, letters[0].Reason)
				require.Equal(t, 2, letters[0].Attempts)
				require.Equal(t, 2, letters[0].Failures)
				var outcomes []wakebelltype.EventKind
				for a, err := range w.Client().History(t.Context(), "t", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
					require.NoError(t, err)
					require.Regexp(t, panicReason, a.Error)
					outcomes = append(outcomes, a.Outcome)
				}
				require.ElementsMatch(t, []wakebelltype.EventKind{"crashed", "dead"}, outcomes)
			})
		})
	}
}

// TestPanicBackoffRetriesLikeError does not wait for the lease.
func TestPanicBackoffRetriesLikeError(t *testing.T) {
	t.Parallel()
	for kind, handler := range panics(2, wakebell.PanicBackoff(), wakebell.RetryBackoff(2*time.Second, 2*time.Second), wakebell.LeaseTTL(time.Hour)) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := wakebell.Config{Handlers: []wakebell.Handler{handler}}
			wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
				schedulePanic(t, w, kind)
				w.Advance(time.Second)
				require.Len(t, w.Delivered("t"), 1)
				w.Advance(2 * time.Second)
				deliveries := w.Delivered("t")
				require.Len(t, deliveries, 2)
				require.Equal(t, wakebelltest.Acked, deliveries[1].Outcome)
			})
		})
	}
}

// TestDeliveriesWithoutVerdictEnd lets a handler that leaves its leases to their expiry fail
// and panic: after MaxAttempts + 10 deliveries, none of them a failure, its timer is a dead
// letter.
func TestDeliveriesWithoutVerdictEnd(t *testing.T) {
	t.Parallel()
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(panicTopic, func(_ context.Context, timer wakebell.Timer[string]) error {
			if timer.Attempt%2 == 0 {
				panic(errAccount)
			}
			return errAccount
		}, wakebell.RetryOnLeaseExpiry(), wakebell.MaxAttempts(2), wakebell.LeaseTTL(10*time.Second)),
	}}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
		schedulePanic(t, w, "topic")
		w.Advance(3 * time.Minute)
		letters := w.Dead("t")
		require.Len(t, letters, 1)
		require.Equal(t, "never settled", letters[0].Reason)
		require.Equal(t, 12, letters[0].Attempts)
		require.Zero(t, letters[0].Failures)
	})
}
