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

// boundaries repeats the same short trial. Each time it injects a fault into another
// command of the node or the client: its request is lost, its reply is lost, or the
// request is sent again later.
func boundaries(w *world) {
	w.redis()
	for _, kind := range []FaultKind{LostRequest, LostReply, Duplicate} {
		for _, ofNode := range []bool{true, false} {
			for nth, hit := int64(1), true; hit; nth++ {
				w.played++
				s := trial{w: w, name: fmt.Sprintf("client-%d", w.played), kind: kind, nth: nth}
				hit = s.play(ofNode)
			}
		}
	}
}

// trial is one repetition with one fault.
type trial struct {
	w    *world
	name string // of the client
	kind FaultKind
	nth  int64 // the number of the command that is hit

	seen atomic.Int64
}

// proxy starts a proxy. If faulty is true, it injects the fault into the nth command.
func (s *trial) proxy(name string, faulty bool) string {
	p := faultproxy.Start(s.w.T, s.w.server.Addr)
	if faulty {
		p.SetRule(func(command []string) faultproxy.Fate {
			if s.seen.Add(1) != s.nth {
				return faultproxy.Fate{}
			}
			return s.w.inject(name, s.kind, 40*time.Millisecond, command)
		})
	}
	return p.Addr
}

// play runs the trial and reports whether there was an nth command.
func (s *trial) play(ofNode bool) bool {
	w := s.w
	node := s.name + "'s node"
	connect := func(name string, faulty bool) *redis.Client {
		addr := s.proxy(name, faulty)
		return w.server.Client(w.T, patient, func(o *redis.Options) {
			o.Addr, o.MinRetryBackoff, o.MaxRetryBackoff = addr, time.Millisecond, 2*time.Millisecond
		})
	}
	cfg := w.config()
	cfg.DrainTimeout = -1
	sys, err := cfg.System(connect(node, ofNode), recorder{w.deliveries, node, time.Now}, quiet)
	require.NoError(w, err)
	require.NoError(w, sys.Start(w.Context()))
	s.call(newClient(w.T, connect(s.name, !ofNode)))
	w.eventually("the trial ends", func() bool {
		return w.pending.Load() == 0 && w.rdb.ZCard(w.Context(), "timers_timeline:"+topic).Val() == 0
	})
	require.NoError(w, sys.Stop())
	w.empty()
	return s.seen.Load() >= s.nth
}

// tell makes the calls of the trial.
func (s *trial) call(c *wakebell.Client) {
	r := &racer{t: s.w.T, deliveries: s.w.deliveries, client: c, name: s.name}
	id := func(n int) string { return fmt.Sprintf("%s/%d", s.name, n) }
	r.plan(s.w.Context(), id(1), Work{Settle: true}, 0)
	r.plan(s.w.Context(), id(2), Work{Fails: 1}, 5*time.Millisecond)
	r.plan(s.w.Context(), id(3), Work{For: s.w.deliveries.TTL * 2 / 5}, 0) // extended once
	r.plan(s.w.Context(), id(4), Work{}, 200*time.Millisecond)
	r.cancel(s.w.Context(), id(4))
	r.plan(s.w.Context(), id(5), Work{}, 200*time.Millisecond)
	r.generation = 1
	r.reschedule(s.w.Context(), id(5), 10*time.Millisecond)
}
