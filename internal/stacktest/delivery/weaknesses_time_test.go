package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
)

// Weakness 3: a nack waits for the whole lease plus the idle backoff; there is no
// delay, attempt count, maximum or dead letter.
func TestNackHasDelayCountAndMaximum(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	var attempts, failures []int
	var at []time.Time // by Redis's clock
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			at = append(at, timer.Delivered)
			attempts, failures = append(attempts, timer.Attempt), append(failures, timer.Failures)
			if timer.Attempt == 3 {
				return fmt.Errorf("closed for lunch: %w", wakebell.RetryIn(time.Minute))
			}
			return errors.New("no luck")
		}, wakebell.LeaseTTL(time.Hour), wakebell.RetryBackoff(time.Second, time.Hour), wakebell.MaxAttempts(4)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		_, err := topic.Schedule(t.Context(), w.Client(), "x", wakebell.ID("x"))
		require.NoError(t, err)
		w.Advance(10 * time.Minute)

		require.Equal(t, []int{1, 2, 3, 4}, attempts)
		require.Equal(t, []int{0, 1, 2, 3}, failures)
		for i, delay := range []time.Duration{time.Second, 2 * time.Second, time.Minute} {
			gap := at[i+1].Sub(at[i])
			require.GreaterOrEqual(t, gap, delay)
			require.LessOrEqual(t, gap, delay+10*time.Millisecond)
		}
		dead := w.Dead("t")
		require.Len(t, dead, 1)
		require.Equal(t, "no luck", dead[0].Reason)
		require.Equal(t, 4, dead[0].Attempts)
		require.Equal(t, 4, dead[0].Failures, "the last failure is included")
		require.Empty(t, w.Upcoming("t"))
	})
}

// Weakness 5: 200 poisoned timers increase the p50 lateness of good ones from 45 ms
// to 2.7 s.
func TestPoisonedTimersDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	without, with := medianLateness(t, 0), medianLateness(t, 200)
	t.Logf("p50 of the good ones: %v without poisoned ones, %v with 200", without, with)
	require.LessOrEqual(t, with, without+10*time.Millisecond)
}

// medianLateness returns the median lateness of 100 good timers, ten a second from
// the start, beside other timers that always fail. All handlers take 10 ms.
func medianLateness(t *testing.T, poisoned int) (p50 time.Duration) {
	t.Helper()
	const good = 100
	topic := wakebell.NewTopic[string]("t")
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			<-time.After(10 * time.Millisecond)
			if timer.Body == "poisoned" {
				return errors.New("always")
			}
			return nil
		}),
	}}, func(t *testing.T, w *wakebelltest.World) {
		var drafts []wakebell.Draft
		for range poisoned {
			drafts = append(drafts, topic.Draft("poisoned"))
		}
		for i := range good {
			drafts = append(drafts, topic.Draft("good", wakebell.In(time.Duration(i)*100*time.Millisecond)))
		}
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		w.Advance(time.Minute)
		var all []time.Duration
		for _, d := range w.Delivered("t") {
			if string(d.Content.Body) == "good" {
				all = append(all, d.At.Sub(d.Activation))
			}
		}
		require.Len(t, all, good)
		slices.Sort(all)
		p50 = all[good/2]
	})
	return p50
}

// Weakness 6: a worker whose clock is 30 s fast delivers 19 s early and redelivers
// leased timers; one that is 10 s slow uses expired leases.
func TestWorkersClockDoesNotMatter(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"30 s fast": 30 * time.Second, "10 s slow": -10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("never early", func(t *testing.T) { neverEarly(t, ahead) })
			t.Run("live leases are left alone", func(t *testing.T) { leasesAlone(t, ahead) })
		})
	}
}

func neverEarly(t *testing.T, ahead time.Duration) {
	t.Helper()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := stacktest.Skewed(t, -ahead)
		topic := wakebell.NewTopic[time.Time]("t")
		redisNow := func() time.Time { return time.Now().Add(-ahead) }
		type arrival struct{ due, delivered, seen time.Time }
		arrivals := make(chan arrival, 100)
		sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[time.Time]) error {
			arrivals <- arrival{timer.Body, timer.Delivered, redisNow()}
			return nil
		}, wakebell.LeaseTTL(10*time.Second)))
		for i := range 20 {
			delay := time.Duration(i) * 3 * time.Second
			due := redisNow().Add(delay)
			_, err := topic.Schedule(t.Context(), sys.Client(), due, wakebell.In(delay))
			require.NoError(t, err)
			_, err = topic.Schedule(t.Context(), sys.Client(), due, wakebell.At(due))
			require.NoError(t, err)
		}
		for range 40 {
			a := <-arrivals
			require.False(t, a.delivered.Before(a.due), "claimed %v early by Redis's clock", a.due.Sub(a.delivered))
			require.False(t, a.seen.Before(a.due), "handled %v early by Redis's clock", a.due.Sub(a.seen))
			// The first timer may be due before the node has subscribed to hints, and
			// wait for a poll.
			require.Less(t, a.seen.Sub(a.due), 250*time.Millisecond, "and not late either")
		}
	})
}

func leasesAlone(t *testing.T, ahead time.Duration) {
	t.Helper()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := stacktest.Skewed(t, -ahead)
		topic := wakebell.NewTopic[string]("t")
		type delivery struct {
			id      string
			attempt int
			at      time.Time // by Redis's clock
			err     error
		}
		deliveries := make(chan delivery, 100)
		handle := func() wakebell.Handler {
			return wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
				if timer.Body == "long" {
					<-time.After(time.Minute)
				}
				deliveries <- delivery{timer.ID, timer.Attempt, timer.Delivered, ctx.Err()}
				return nil
			}, wakebell.LeaseTTL(6*time.Second))
		}
		nodes := []*wakebell.System{stacktest.Serve(t, rdb, handle()), stacktest.Serve(t, rdb, handle())}
		redisNow := time.Now().Add(-ahead)
		for i := range 6 {
			_, err := topic.Schedule(t.Context(), nodes[0].Client(), "long", wakebell.ID("long "+strconv.Itoa(i)))
			require.NoError(t, err)
		}
		// The peer writes a lease as a score in the future.
		leaseEnd := redisNow.Add(20 * time.Second)
		stacktest.Peer{Rdb: rdb, Topic: "t"}.Publish(t, "peer's", "x", float64(leaseEnd.UnixMicro())/1e6)

		<-time.After(5 * time.Minute)
		synctest.Wait()
		require.Len(t, deliveries, 7, "each once, on two nodes")
		for range 7 {
			d := <-deliveries
			require.Equal(t, 1, d.attempt, d.id)
			require.NoError(t, d.err, d.id)
			if d.id == "peer's" {
				require.False(t, d.at.Before(leaseEnd))
			}
		}
		for _, node := range nodes {
			require.Zero(t, node.Counters()["t"].Lost)
		}
	})
}

// Weakness 8: on an idle topic the p50 is 2.8 s late, the p99 5 s.
func TestIdleTopicIsPrompt(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, stacktest.Nothing)}}, func(t *testing.T, w *wakebelltest.World) {
		for _, in := range []time.Duration{0, time.Millisecond, time.Second, time.Minute} {
			w.Advance(10 * time.Hour) // the poller's backoff is at its maximum
			_, err := topic.Schedule(t.Context(), w.Client(), "x", wakebell.ID(in.String()), wakebell.In(in))
			require.NoError(t, err)
			w.Advance(in + 10*time.Hour)
			d := w.RequireDelivered("t", in.String())
			require.LessOrEqual(t, d.At.Sub(d.Activation), 5*time.Millisecond, "in %v", in)
		}
	})
}
