package wakebelltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var notes = wakebell.NewTopic[string]("notes")

func handling(fn func(context.Context, wakebell.Timer[string]) error, opts ...wakebell.HandlerOption) wakebell.Config {
	return wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(notes, fn, opts...)}}
}

func acks(context.Context, wakebell.Timer[string]) error { return nil }

func schedule(t *testing.T, w *wakebelltest.World, id, body string, opts ...wakebell.ScheduleOption) {
	t.Helper()
	_, err := notes.Schedule(t.Context(), w.Client(), body, append(opts, wakebell.ID(id))...)
	require.NoError(t, err)
}

// outcomes returns deliveries as id, attempt and outcome.
func outcomes(deliveries []wakebelltest.Delivery) (all []string) {
	for _, d := range deliveries {
		all = append(all, fmt.Sprint(d.ID, " ", d.Attempt, " ", d.Outcome))
	}
	return all
}

func TestAdvanceIsExact(t *testing.T) {
	t.Parallel()
	for _, in := range []time.Duration{0, time.Microsecond, time.Second / 7, time.Second, time.Hour + time.Second/3, 72 * time.Hour} {
		t.Run(in.String(), func(t *testing.T) {
			t.Parallel()
			wakebelltest.Run(t, handling(acks), func(t *testing.T, w *wakebelltest.World) {
				began := time.Now()
				schedule(t, w, "a", "x", wakebell.In(in))
				schedule(t, w, "later", "x", wakebell.In(in+2*time.Millisecond))
				if in > 0 {
					w.Advance(in - time.Microsecond)
					require.Empty(t, w.Delivered("notes"))
					w.Advance(time.Microsecond)
				} else {
					w.Advance(0)
				}
				require.Equal(t, []string{"a 1 acked"}, outcomes(w.Delivered("notes")))
				require.WithinDuration(t, began.Add(in), w.RequireDelivered("notes", "a").At, 3*time.Microsecond)
				require.WithinDuration(t, began.Add(in), time.Now(), time.Millisecond)
				require.Equal(t, "later", w.RequireUpcoming("notes", "later").ID)
			})
		})
	}
}

func TestAdvanceDeliversDueTimersInOrder(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(func(ctx context.Context, timer wakebell.Timer[string]) error {
		if timer.ID == "slow" {
			<-time.After(90 * time.Second) // three leases
		}
		return nil
	}, wakebell.MaxConcurrent(2)), func(t *testing.T, w *wakebelltest.World) {
		for i, id := range []string{"c", "b", "a", "slow"} {
			schedule(t, w, id, "x", wakebell.In(time.Duration(4-i)*time.Hour))
		}
		w.Advance(time.Hour)
		require.Equal(t, []string{"slow 1 running"}, outcomes(w.Delivered("notes")))
		w.Advance(24 * time.Hour)
		require.Equal(t, []string{"slow 1 acked", "a 1 acked", "b 1 acked", "c 1 acked"}, outcomes(w.Delivered("notes")))
		slow := w.RequireDelivered("notes", "slow")
		require.Equal(t, 90*time.Second, slow.Ended.Sub(slow.At))
	})
}

func TestMoreTimersThanSlotsAtOneInstant(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(acks), func(t *testing.T, w *wakebelltest.World) {
		drafts := make([]wakebell.Draft, 300)
		for i := range drafts {
			drafts[i] = notes.Draft("x", wakebell.In(time.Hour))
		}
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		w.Advance(time.Hour)
		require.Len(t, w.Delivered("notes"), 300)
		require.Empty(t, w.Upcoming("notes"))
	})
}

// Handlers that block all slots must not block Advance.
func TestAdvanceWithAllSlotsTaken(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(func(ctx context.Context, _ wakebell.Timer[string]) error {
		<-ctx.Done()
		return ctx.Err()
	}, wakebell.MaxConcurrent(1)), func(t *testing.T, w *wakebelltest.World) {
		began := time.Now()
		schedule(t, w, "a", "x")
		schedule(t, w, "b", "x")
		w.Advance(time.Minute)
		require.Equal(t, []string{"a 1 running"}, outcomes(w.Delivered("notes")))
		require.WithinDuration(t, began.Add(time.Minute), time.Now(), 2*time.Millisecond)
	})
}

func TestEveryOutcome(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	verdicts := map[string]func(ctx context.Context) error{
		"ack":    func(context.Context) error { return nil },
		"fail":   func(context.Context) error { return no },
		"later":  func(context.Context) error { return wakebell.RetryIn(time.Hour) },
		"reject": func(context.Context) error { return wakebell.Reject(no) },
		"panic":  func(context.Context) error { panic("as the test wants it") },
		"long":   func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
	}
	wakebelltest.Run(t, handling(func(ctx context.Context, timer wakebell.Timer[string]) error {
		return verdicts[timer.Body](ctx)
	}, wakebell.MaxAttempts(2), wakebell.MaxConcurrent(20)), func(t *testing.T, w *wakebelltest.World) {
		for body := range verdicts {
			schedule(t, w, body, body)
		}
		schedule(t, w, "replaced", "long")
		w.Advance(time.Millisecond)
		last := func(id string) string {
			return fmt.Sprint(outcomes([]wakebelltest.Delivery{w.RequireDelivered("notes", id)}))
		}
		require.Equal(t, "[ack 1 acked]", last("ack"))
		require.Equal(t, "[fail 1 retried]", last("fail"))
		require.ErrorIs(t, w.RequireDelivered("notes", "fail").Err, no)
		require.Equal(t, "[later 1 retried]", last("later"))
		require.Equal(t, "[reject 1 dead]", last("reject"))
		require.Equal(t, "[panic 1 crashed]", last("panic"))
		require.Equal(t, "[long 1 running]", last("long"))
		require.InDelta(t, time.Second, w.RequireUpcoming("notes", "fail").In, float64(10*time.Millisecond), "without jitter")
		require.Equal(t, wakebell.StateRetrying, w.RequireUpcoming("notes", "later").State)
		require.Equal(t, "no", w.Dead("notes")[0].Reason)

		schedule(t, w, "replaced", "ack", wakebell.In(time.Hour))
		_, err := notes.Cancel(t.Context(), w.Client(), "long")
		require.NoError(t, err)
		w.Advance(30 * time.Second)
		require.Equal(t, "[long 1 cancelled]", last("long"))
		require.ErrorIs(t, w.RequireDelivered("notes", "long").Err, wakebell.ErrCancelled)
		require.Equal(t, "[replaced 1 superseded]", last("replaced"))
		require.Equal(t, "[fail 2 dead]", last("fail"))
		require.Equal(t, "[panic 2 dead]", last("panic"), "after its lease has expired")
	})
}

func TestUnreadableAndDiscarded(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(func(context.Context, wakebell.Timer[string]) error {
		return wakebell.Reject(errors.New("no"))
	}, wakebell.DiscardRejected()), func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w, "rejected", "x")
		other := wakebell.NewTopic[[]byte]("notes")
		_, err := other.Schedule(t.Context(), w.Client(), []byte("\xff"), wakebell.ID("bytes"))
		require.NoError(t, err)
		w.Advance(0)
		require.Equal(t, wakebelltest.Discarded, w.RequireDelivered("notes", "rejected").Outcome)
		d := w.RequireDelivered("notes", "bytes")
		require.Equal(t, wakebelltest.Dead, d.Outcome)
		require.ErrorIs(t, d.Err, wakebell.ErrUnreadable)
		require.Equal(t, []byte("\xff"), d.Content.Body)
	})
}

func TestRetryOnLeaseExpiryIsRetried(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(func(context.Context, wakebell.Timer[string]) error {
		return errors.New("no")
	}, wakebell.RetryOnLeaseExpiry(), wakebell.LeaseTTL(time.Minute)), func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w, "a", "x")
		w.Advance(0)
		require.Equal(t, []string{"a 1 retried"}, outcomes(w.Delivered("notes")))
		w.Advance(time.Minute)
		require.Equal(t, []string{"a 1 retried", "a 2 retried"}, outcomes(w.Delivered("notes")))
	})
}

// A handler schedules its own id for the same instant.
func TestTimerThatIsDueAgainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *wakebelltest.World
		w = wakebelltest.New(t, handling(func(ctx context.Context, timer wakebell.Timer[string]) error {
			if timer.Body != "xxxx" {
				schedule(t, w, timer.ID, timer.Body+"x")
			}
			<-time.After(time.Duration(len(timer.Body)) * time.Second) // the next one runs meanwhile, and longer
			return nil
		}))
		schedule(t, w, "a", "x")
		w.Advance(10 * time.Second)
		require.Equal(t, []string{"a 1 superseded", "a 1 superseded", "a 1 superseded", "a 1 acked"}, outcomes(w.Delivered("notes")))
		require.Empty(t, w.Upcoming("notes"))
	})
}

func TestClientOnly(t *testing.T) {
	t.Parallel()
	wakebelltest.RunWith(t, connection.Config{Prefix: "eu:"}, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		require.Empty(t, w.Nodes())
		scheduled, err := w.Client().Schedule(t.Context(), invoices.Draft(invoice{Number: "42"},
			wakebell.ID("inv-42"), wakebell.In(72*time.Hour)))
		require.NoError(t, err)
		u := w.RequireUpcoming("invoices", "inv-42")
		require.Equal(t, 72*time.Hour, u.In)
		require.Equal(t, scheduled[0].Due, u.Due)
		require.Equal(t, wakebell.StatePending, u.State)
		require.Equal(t, "eu:invoices", u.Topic)
		require.Equal(t, invoice{Number: "42"}, wakebelltest.Body[invoice](t, u.Content))
		w.Advance(100 * 365 * 24 * time.Hour) // free without a node
		require.Negative(t, w.RequireUpcoming("invoices", "inv-42").In)
		require.EqualValues(t, 1, w.Redis().Exists(t.Context(), "timers_timeline:eu:invoices").Val())
	})
}

func TestTopicWithShardsIsOneTopic(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(acks, wakebell.Shards(4)), func(t *testing.T, w *wakebelltest.World) {
		for i := range 20 {
			schedule(t, w, fmt.Sprint(i), "x", wakebell.In(time.Duration(i+1)*time.Minute))
		}
		w.Advance(10 * time.Minute)
		require.Len(t, w.Delivered("notes"), 10)
		w.Advance(72 * time.Hour)
		require.Len(t, w.Delivered("notes"), 20)
	})
}

// TestTopicThatDeliversSteadily checks that every timer is pending until it is due: in
// production a node claims some of them before.
func TestTopicThatDeliversSteadily(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(acks), func(t *testing.T, w *wakebelltest.World) {
		const n, apart = 50, 100 * time.Millisecond
		for i := range n {
			schedule(t, w, fmt.Sprint(i), "", wakebell.In(time.Duration(i)*apart))
		}
		w.Advance(0)
		for i := range n {
			require.Len(t, w.Delivered(notes.Name()), i+1)
			require.Len(t, w.Upcoming(notes.Name()), n-1-i)
			w.Advance(apart)
		}
		for _, d := range w.Delivered(notes.Name()) {
			require.Equal(t, wakebelltest.Acked, d.Outcome)
			require.WithinRange(t, d.At, d.Activation, d.Activation.Add(2*time.Millisecond))
		}
	})
}
