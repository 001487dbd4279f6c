package actors

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
)

// steadySource has timers that become due one after the other. An exchange takes half a
// millisecond, and its clock is read in the middle.
type steadySource struct {
	*actortest.MemorySource
	mu        sync.Mutex
	due       []time.Time // of the timers that are not claimed
	claimed   int
	settled   int
	exchanges int
}

func (s *steadySource) Exchange(_ context.Context, r *exchange.Request) (*exchange.Reply, error) {
	<-time.After(250 * time.Microsecond)
	reply := s.claim(r)
	<-time.After(250 * time.Microsecond)
	return reply, nil
}

func (s *steadySource) claim(r *exchange.Request) *exchange.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges++
	s.settled += len(r.Settle)
	reply := &exchange.Reply{Now: time.Now(), Remaining: r.LeaseTTL, Next: -1}
	if s.claimed == 0 {
		s.exchanges = 1 // those before it found nothing
	}
	for len(reply.Leases) < r.Want && len(s.due) > 0 && !s.due[0].After(reply.Now.Add(r.Ahead)) {
		reply.Leases = append(reply.Leases, exchange.Lease{ID: strconv.Itoa(s.claimed), Token: "t", Claims: 1, Activation: s.due[0]})
		s.due, s.claimed = s.due[1:], s.claimed+1
	}
	if len(s.due) > 0 {
		reply.Next = max(s.due[0].Sub(reply.Now), 0)
	}
	return reply
}

// With the delivery window and early claims no timer is early, and at every rate the 50th
// percentile is late by 3 ms at most, the 99th by 10 ms, with few exchanges.
func TestTimersOneByOneShareExchanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate int
		most float64 // exchanges a timer
	}{{5, 1.7}, {20, 0.4}, {100, 0.1}, {400, 0.05}, {2000, 0.03}, {10_000, 0.025}} {
		t.Run(fmt.Sprintf("%d a second", c.rate), func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				s := &steadySource{MemorySource: actortest.NewMemorySource(0)}
				n := max(5*c.rate, 400) // the lead is random: few timers may need more exchanges
				for i := range n {
					s.due = append(s.due, time.Now().Add(time.Second+time.Duration(i)*time.Second/time.Duration(c.rate)))
				}
				late := make(chan time.Duration, n)
				topic := topicOn(s, 100, func(_ context.Context, d *poller.Delivery) poller.Outcome {
					late <- time.Since(d.Activation)
					return poller.Succeeded()
				})
				topic.Window = poller.AutomaticWindow
				rt := start(t, actortest.QuietSystem(), "a", topic)
				all := make([]time.Duration, n)
				for i := range all {
					all[i] = <-late
				}
				_, err := rt.Shutdown(time.Second)
				require.NoError(t, err)
				slices.Sort(all)
				require.GreaterOrEqual(t, all[0], time.Duration(0), "early")
				require.LessOrEqual(t, all[n/2], 3*time.Millisecond)
				require.LessOrEqual(t, all[n*99/100], 10*time.Millisecond)
				require.Equal(t, n, s.settled)
				require.LessOrEqual(t, float64(s.exchanges)/float64(n), c.most)
			})
		})
	}
}
