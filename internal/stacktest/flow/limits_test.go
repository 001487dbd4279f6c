package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// limited is a topic whose timers take took, with two nodes.
func limited(t *testing.T, timers int, took time.Duration, opts []wakebell.HandlerOption, test func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node)) {
	t.Helper()
	t.Parallel()
	topic := wakebell.NewTopic[int]("mail")
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		drafts := make([]wakebell.Draft, timers)
		for i := range drafts {
			drafts[i] = topic.Draft(i)
		}
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		cfg := wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[int]) error {
				if timer.Body < 0 && timer.Attempt == 1 {
					return errors.New("again")
				}
				if took == 0 { // a timer that is over at once can crash Go 1.26 in a bubble, with the race detector
					return nil
				}
				select {
				case <-time.After(took):
				case <-ctx.Done():
				}
				return nil
			}, opts...),
		}}
		test(t, w, []*wakebelltest.Node{w.Start(cfg), w.Start(cfg)})
	})
}

// exchanges is how many exchanges the nodes have sent.
func exchanges(nodes []*wakebelltest.Node) (n int64) {
	for _, node := range nodes {
		n += node.System().Counters()["mail"].Exchanges
	}
	return n
}

func started(w *wakebelltest.World, from, to time.Time) (n int) {
	for _, d := range w.Delivered("mail") {
		if !d.At.Before(from) && d.At.Before(to) {
			n++
		}
	}
	return n
}

func TestRateLimitHoldsOverAllNodes(t *testing.T) {
	limited(t, 1000, 0, []wakebell.HandlerOption{wakebell.RateLimit(10, time.Second, 5)}, func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node) {
		began := time.Now()
		w.Advance(10 * time.Second)
		n := started(w, began, began.Add(10*time.Second))
		require.LessOrEqual(t, n, 5+100)
		require.GreaterOrEqual(t, n, 100, "the rate is reached")
		for i := range 9 {
			from := began.Add(time.Duration(i) * time.Second)
			require.LessOrEqual(t, started(w, from, from.Add(time.Second)), 5+10)
		}
		// Each of the nodes asks for each token, and may lose the race for it.
		require.Less(t, exchanges(nodes), int64(4*n), "no empty polls")
		require.Positive(t, nodes[0].System().Counters()["mail"].Throttled)
	})
}

// TestTokensAreTakenInGroups checks that a node claims the tokens of 100 ms at once,
// with the acks of the timers before them.
func TestTokensAreTakenInGroups(t *testing.T) {
	limited(t, 6000, 0, []wakebell.HandlerOption{wakebell.RateLimit(500, time.Second, 0), wakebell.MaxConcurrent(100)}, func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node) {
		nodes[1].Crash()
		w.Advance(3 * time.Second)
		before, handled := exchanges(nodes[:1]), len(w.Delivered("mail"))
		w.Advance(5 * time.Second)
		require.InDelta(t, 2500, len(w.Delivered("mail"))-handled, 100)
		// Ten groups a second, each with an exchange for the claim and one for the acks, which
		// do not wait for the next claim in a World.
		require.Less(t, exchanges(nodes[:1])-before, int64(110))
	})
}

func TestLimitedTopicDoesNotPollInVain(t *testing.T) {
	limited(t, 1000, 0, []wakebell.HandlerOption{wakebell.RateLimit(1, time.Hour, 1)}, func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node) {
		w.Advance(time.Minute)
		before := exchanges(nodes)
		w.Advance(50 * time.Minute)
		topic := wakebell.NewTopic[int]("mail")
		_, err := topic.Schedule(t.Context(), w.Client(), 1, wakebell.ID("first"), wakebell.At(time.Now().Add(-24*time.Hour)))
		require.NoError(t, err)
		w.Advance(5 * time.Minute)
		require.Equal(t, before, exchanges(nodes), "neither the idle backoff nor hints cause a poll")
		require.Len(t, w.Delivered("mail"), 1)
		w.Advance(5 * time.Minute)
		require.Len(t, w.Delivered("mail"), 2)
		require.Equal(t, "first", w.Delivered("mail")[1].ID)
	})
}

func TestRetryIsBoundByRateLimit(t *testing.T) {
	limited(t, 0, 0, []wakebell.HandlerOption{
		wakebell.RateLimit(1, time.Minute, 1), wakebell.RetryBackoff(time.Millisecond, time.Millisecond),
	}, func(t *testing.T, w *wakebelltest.World, _ []*wakebelltest.Node) {
		topic := wakebell.NewTopic[int]("mail")
		_, err := topic.Schedule(t.Context(), w.Client(), -1)
		require.NoError(t, err)
		w.Advance(time.Second)
		require.Len(t, w.Delivered("mail"), 1)
		w.Advance(time.Minute)
		all := w.Delivered("mail")
		require.Len(t, all, 2)
		require.InDelta(t, time.Minute, all[1].At.Sub(all[0].At), float64(time.Second))
	})
}

func TestRateLimitIsRetunedOnAllNodes(t *testing.T) {
	opts := []wakebell.HandlerOption{wakebell.RateLimit(1, time.Hour, 1)}
	limited(t, 1000, 0, opts, func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node) {
		retune := func(s wakebelltype.Settings) {
			_, err := w.Client().Retune(t.Context(), "mail", s)
			require.NoError(t, err)
		}
		w.Advance(30 * time.Minute)
		require.Len(t, w.Delivered("mail"), 1)
		retune(wakebelltype.Settings{RateLimit: 100, RatePer: time.Second, RateBurst: 1})
		w.Advance(time.Second)
		require.Greater(t, len(w.Delivered("mail")), 50)
		retune(wakebelltype.Settings{RateLimit: -1})
		w.Advance(10 * time.Second)
		require.Len(t, w.Delivered("mail"), 1000, "without a limit")
		require.NoError(t, nodes[0].System().RetuneLocal("mail", wakebell.RateLimit(5, time.Second, 0)))
	})
}

func TestMaxInFlightHoldsOverAllNodes(t *testing.T) {
	opts := []wakebell.HandlerOption{wakebell.MaxInFlight(3), wakebell.MaxConcurrent(2)}
	limited(t, 60, time.Second, opts, func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node) {
		began := time.Now()
		for range 30 {
			w.Advance(time.Second)
			require.LessOrEqual(t, running(w), 3)
		}
		require.Len(t, w.Delivered("mail"), 60, "the maximum is reached")
		require.Less(t, time.Since(began), 31*time.Second)
	})
}

// running is how many timers are being handled.
func running(w *wakebelltest.World) (n int) {
	for _, d := range w.Delivered("mail") {
		if d.Outcome == wakebelltest.Running {
			n++
		}
	}
	return n
}

// TestCrashedNodeLeavesItsPlaces checks that the timers of a crashed node count until
// their leases expire and no longer, and that the other node does not poll until
// then.
func TestCrashedNodeLeavesItsPlaces(t *testing.T) {
	opts := []wakebell.HandlerOption{wakebell.MaxInFlight(2), wakebell.MaxConcurrent(2), wakebell.LeaseTTL(30 * time.Second)}
	limited(t, 10, time.Hour, opts, func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node) {
		w.Advance(time.Minute)
		require.Equal(t, 2, running(w))
		holder, other := nodes[0], nodes[1]
		if holder.System().Counters()["mail"].Held == 0 {
			holder, other = other, holder
		}
		require.EqualValues(t, 2, holder.System().Counters()["mail"].Held)
		holder.Crash()
		w.Advance(5 * time.Second)
		require.Zero(t, other.System().Counters()["mail"].Held)
		w.Advance(26 * time.Second)
		require.EqualValues(t, 2, other.System().Counters()["mail"].Held)
		require.Less(t, other.System().Counters()["mail"].Exchanges, int64(40))
	})
}

// TestSettlementWakesOtherNode checks that a node that waits claims as soon as
// another node ends a timer and does not claim itself.
func TestSettlementWakesOtherNode(t *testing.T) {
	opts := []wakebell.HandlerOption{wakebell.MaxInFlight(1), wakebell.MaxConcurrent(1)}
	limited(t, 2, 10*time.Second, opts, func(t *testing.T, w *wakebelltest.World, nodes []*wakebelltest.Node) {
		w.Advance(time.Second)
		holder := nodes[0]
		if holder.System().Counters()["mail"].Held == 0 {
			holder = nodes[1]
		}
		require.NoError(t, holder.System().PauseLocal("mail"))
		w.Advance(9*time.Second + 200*time.Millisecond)
		all := w.Delivered("mail")
		require.Len(t, all, 2)
		require.InDelta(t, 10*time.Second, all[1].At.Sub(all[0].At), float64(100*time.Millisecond))
	})
}

func TestMaxInFlightIsRetunedOnAllNodes(t *testing.T) {
	opts := []wakebell.HandlerOption{wakebell.MaxConcurrent(10)}
	limited(t, 400, 10*time.Second, opts, func(t *testing.T, w *wakebelltest.World, _ []*wakebelltest.Node) {
		for _, most := range []int{1, 8, 1, -1} {
			_, err := w.Client().Retune(t.Context(), "mail", wakebelltype.Settings{MaxInFlight: most})
			require.NoError(t, err)
			w.Advance(25 * time.Second)
			want := most
			if most < 0 {
				want = 20
			}
			require.Equal(t, want, running(w))
		}
	})
}
