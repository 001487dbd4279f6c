package faults

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/faultproxy"
)

// boundaries plays the same short story again and again, and strikes each time
// another one of the commands that node and client send in it: its request is
// lost, its reply is lost, or the request comes once more later.
func boundaries(w *world) {
	w.redis()
	for _, kind := range []FaultKind{LostRequest, LostReply, Duplicate} {
		for _, ofNode := range []bool{true, false} {
			for nth, struck := int64(1), true; struck; nth++ {
				w.stories++
				s := story{w: w, name: fmt.Sprintf("client-%d", w.stories), kind: kind, nth: nth}
				struck = s.play(ofNode)
			}
		}
	}
}

// story is one trial.
type story struct {
	w    *world
	name string // of the client
	kind FaultKind
	nth  int64 // the command that is struck

	seen atomic.Int64
}

// proxy strikes the nth command that passes it, if it is the one to.
func (s *story) proxy(who string, strikes bool) string {
	p := faultproxy.Start(s.w.T, s.w.server.Addr)
	if strikes {
		p.SetRule(func(command []string) faultproxy.Fate {
			if s.seen.Add(1) != s.nth {
				return faultproxy.Fate{}
			}
			return s.w.strike(who, s.kind, 40*time.Millisecond, command)
		})
	}
	return p.Addr
}

// play reports whether there was an nth command.
func (s *story) play(ofNode bool) bool {
	w := s.w
	node := s.name + "'s node"
	connect := func(who string, strikes bool) *redis.Client {
		addr := s.proxy(who, strikes)
		return w.server.Client(w.T, patient, func(o *redis.Options) {
			o.Addr, o.MinRetryBackoff, o.MaxRetryBackoff = addr, time.Millisecond, 2*time.Millisecond
		})
	}
	cfg := w.config()
	cfg.DrainTimeout = -1
	sys, err := cfg.System(connect(node, ofNode), listener{w.ledger, node, time.Now}, quiet)
	require.NoError(w, err)
	require.NoError(w, sys.Start(w.Context()))
	s.tell(newClient(w.T, connect(s.name, !ofNode)))
	w.eventually("the story ends", func() bool {
		return w.pending.Load() == 0 && w.rdb.ZCard(w.Context(), "timers_timeline:"+topic).Val() == 0
	})
	require.NoError(w, sys.Stop())
	w.empty()
	return s.seen.Load() >= s.nth
}

// tell makes the calls of the story.
func (s *story) tell(c *wakebell.Client) {
	r := &racer{t: s.w.T, ledger: s.w.ledger, client: c, name: s.name}
	id := func(n int) string { return fmt.Sprintf("%s/%d", s.name, n) }
	r.plan(s.w.Context(), id(1), Work{Settle: true}, 0)
	r.plan(s.w.Context(), id(2), Work{Fails: 1}, 5*time.Millisecond)
	r.plan(s.w.Context(), id(3), Work{For: s.w.ledger.TTL * 2 / 5}, 0) // extended once
	r.plan(s.w.Context(), id(4), Work{}, 200*time.Millisecond)
	r.cancel(s.w.Context(), id(4))
	r.plan(s.w.Context(), id(5), Work{}, 200*time.Millisecond)
	r.generation = 1
	r.reschedule(s.w.Context(), id(5), 10*time.Millisecond)
}
