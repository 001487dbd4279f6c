package actors

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
)

// TestPrefetchForQuickHandlers checks that the poller prefetches the leases that
// its handlers finish within the prefetch window, and no more.
func TestPrefetchForQuickHandlers(t *testing.T) {
	t.Parallel()
	const slots = 5
	for _, c := range []struct {
		takes      time.Duration
		prefetched int // upper bound, including unsettled leases; the lower bound is a third
	}{
		{takes: 100 * time.Microsecond, prefetched: 400},
		{takes: time.Millisecond, prefetched: 40},
		{takes: 10 * time.Millisecond},
		{takes: time.Second},
	} {
		t.Run(c.takes.String(), func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				timers := 500
				if c.prefetched > 0 {
					timers = 10_000
				}
				s := actortest.NewMemorySource(timers)
				rt := start(t, actortest.QuietSystem(), "a", topicOn(s, slots, func(ctx context.Context, _ *poller.Delivery) poller.Outcome {
					select {
					case <-time.After(c.takes):
					case <-ctx.Done():
					}
					return poller.Succeeded()
				}))
				<-time.After(time.Duration(timers) * 9 / 10 * c.takes / slots)
				require.NoError(t, rt.Stop())
				require.LessOrEqual(t, s.MaxLeased, slots+c.prefetched, "leases at once")
				require.GreaterOrEqual(t, s.MaxLeased, slots+c.prefetched/3, "leases at once")
			})
		})
	}
}

// TestSlowHandlersReturnExcessLeases checks that prefetched leases are released to
// other nodes within MaxPrefetchWait when handlers suddenly become slow.
func TestSlowHandlersReturnExcessLeases(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		const slots = 5
		s, slow := actortest.NewMemorySource(10_000), atomic.Bool{}
		rt := start(t, actortest.QuietSystem(), "a", topicOn(s, slots, func(ctx context.Context, _ *poller.Delivery) poller.Outcome {
			if slow.Load() {
				<-ctx.Done()
			}
			<-time.After(100 * time.Microsecond)
			return poller.Succeeded()
		}))
		<-time.After(100 * time.Millisecond)
		slow.Store(true)
		<-time.After(poller.MaxPrefetchWait + 10*time.Millisecond)
		due, leased, settled, _ := s.Count()
		require.Equal(t, slots, leased)
		require.Equal(t, 10_000, due+leased+settled)
		require.Positive(t, s.Released)
		<-time.After(30 * time.Second)
		_, leased, _, _ = s.Count()
		require.Equal(t, slots, leased, "nothing is prefetched for slow handlers")
		require.NoError(t, rt.Stop())
	})
}

func TestPrefetchOff(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		const slots, timers = 5, 1000
		s := actortest.NewMemorySource(timers)
		topic := topicOn(s, slots, acks)
		topic.NoPrefetch = true
		rt := start(t, actortest.QuietSystem(), "a", topic)
		<-time.After(time.Minute)
		_, _, settled, _ := s.Count()
		require.Equal(t, timers, settled)
		require.Equal(t, slots, s.MaxLeased, "leases at once")
		require.NoError(t, rt.Stop())
	})
}
