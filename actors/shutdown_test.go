package actors

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/messages/gate"
)

// TestIdleRuntimeShutsDownSoonWhileSourceIsDown checks that an idle runtime
// waits only for a reply that may contain leases, although the source is down.
func TestIdleRuntimeShutsDownSoonWhileSourceIsDown(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s, down := actortest.NewMemorySource(0), atomic.Bool{}
		s.Before = func() error {
			if down.Load() {
				return fmt.Errorf("as the test wants it: %w", exchange.ErrUnavailable)
			}
			return nil
		}
		rt := start(t, actortest.QuietSystem(), "a", topicOn(s, 5, acks))
		<-time.After(time.Second)
		down.Store(true)
		<-time.After(10 * time.Second)
		began := time.Now()
		_, err := rt.Shutdown(20 * time.Second)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), poller.DrainFlush+100*time.Millisecond)
	})
}

// TestShutdownSettlesWhenSourceIsBack checks that a shutdown with an unsettled
// outcome waits up to its timeout for the source to come back.
func TestShutdownSettlesWhenSourceIsBack(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s, down := actortest.NewMemorySource(1), atomic.Bool{}
		s.Before = func() error {
			if down.Load() {
				return fmt.Errorf("as the test wants it: %w", exchange.ErrUnavailable)
			}
			return nil
		}
		rt := start(t, actortest.QuietSystem(), "a", topicOn(s, 5, func(context.Context, *poller.Delivery) poller.Outcome {
			<-time.After(5 * time.Second)
			return poller.Succeeded()
		}))
		<-time.After(time.Second)
		down.Store(true)
		<-time.After(10 * time.Second)
		time.AfterFunc(15*time.Second, func() { down.Store(false) })
		_, err := rt.Shutdown(20 * time.Second)
		require.NoError(t, err)
		_, _, settled, _ := s.Count()
		require.Equal(t, 1, settled)
	})
}

// stuckGate is a store of gates that stops answering when stuck is set, until the
// test ends.
type stuckGate struct {
	actortest.OpenGate
	stuck   atomic.Bool
	release chan struct{}
}

func (s *stuckGate) Exchange(ctx context.Context, r *gate.Request) (*gate.Reply, error) {
	if s.stuck.Load() {
		<-s.release
	}
	return s.OpenGate.Exchange(ctx, r)
}

// TestShutdownIsBounded checks that a shutdown ends in time although the source,
// the store of the gates, a request to the gateway, a handler and the hook hang.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{0, 500 * time.Millisecond, 20 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				release, hang := make(chan struct{}), atomic.Bool{}
				s, l := actortest.NewMemorySource(0), &fakeTimers{do: until(release)}
				s.Put("dies", "hangs")
				s.Before = func() error {
					if hang.Load() {
						<-release
					}
					return nil
				}
				store := &stuckGate{OpenGate: actortest.OpenGate{Processes: map[string]bool{}}, release: release}
				rt, err := Start(actortest.QuietSystem(), Config{
					Name: "wakebell", Timers: l, Logger: actortest.DiscardLogger, Random: func() float64 { return 0.5 },
					Topics: []poller.Topic{topicOn(s, 2, func(_ context.Context, d *poller.Delivery) poller.Outcome {
						if d.ID == "dies" {
							return poller.Rejected(fmt.Errorf("it has to"))
						}
						<-release
						return poller.Succeeded()
					})},
					OnDead: func(context.Context, observe.DeadTimer) { <-release },
					Gates: &gates.Config{
						Store: store, Terms: gate.Terms{Lease: time.Hour, Signal: time.Hour, Presence: time.Hour},
						Logger: actortest.DiscardLogger, Process: func() string { return "process" },
					},
				})
				require.NoError(t, err)
				gates, err := rt.Gates()
				require.NoError(t, err)
				_, err = gates.Acquire(t.Context(), "gate", false)
				require.NoError(t, err)
				_ = ask(rt.system, schedule(1)) // it hangs
				<-time.After(time.Second)
				hang.Store(true)
				store.stuck.Store(true)
				<-time.After(time.Second)

				began := time.Now()
				drained, err := rt.Shutdown(timeout)
				require.NoError(t, err)
				require.Equal(t, []string{"hangs"}, drained.GetTopics()[0].GetUnfinished())
				require.LessOrEqual(t, time.Since(began), timeout+StopGrace)
				require.Greater(t, time.Since(began), timeout+poller.DrainGrace+poller.DrainFlush)
				close(release)
			})
		})
	}
}
