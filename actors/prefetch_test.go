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

// TestQuickHandlersHaveLeasesAhead: the poller claims what its handlers finish
// within aheadFor, and no more than that.
func TestQuickHandlersHaveLeasesAhead(t *testing.T) {
	t.Parallel()
	const slots = 5
	for _, c := range []struct {
		takes time.Duration
		ahead int // at most, with what is about to be settled; and a third of it at least
	}{
		{takes: 100 * time.Microsecond, ahead: 400},
		{takes: time.Millisecond, ahead: 40},
		{takes: 10 * time.Millisecond},
		{takes: time.Second},
	} {
		t.Run(c.takes.String(), func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				timers := 500
				if c.ahead > 0 {
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
				require.LessOrEqual(t, s.MaxLeased, slots+c.ahead, "leases at once")
				require.GreaterOrEqual(t, s.MaxLeased, slots+c.ahead/3, "leases at once")
			})
		})
	}
}

// TestSlowHandlersGiveBackWhatIsAhead: handlers become slow all of a sudden.
// What waits for them goes to other nodes within moments, though it was claimed.
func TestSlowHandlersGiveBackWhatIsAhead(t *testing.T) {
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
		require.Equal(t, slots, leased, "slow handlers get nothing ahead")
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
