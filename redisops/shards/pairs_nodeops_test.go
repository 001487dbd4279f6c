package shards

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

func (w *world) node(st step) *node { return st.site(w).nodes[st.c%2] }

func (w *world) claimSome(st step) {
	n := w.node(st)
	if !n.alive || len(n.sources) == 0 {
		return
	}
	ttl := []time.Duration{time.Minute, time.Minute, 2 * time.Second}[st.target%3]
	for i, s := range n.sources {
		if st.flag || i == st.b%len(n.sources) {
			w.claim(n, s, 1+st.b%4, ttl)
		}
	}
}

func (w *world) settleSome(st step) {
	n := w.node(st)
	leases := n.leases()
	if len(leases) == 0 {
		return
	}
	verdicts := []exchange.Verdict{exchange.Ack, exchange.Ack, exchange.Ack, exchange.Nack, exchange.Nack, exchange.DeadLetter, exchange.Release}
	verdict := verdicts[st.b%len(verdicts)]
	some := leases[st.target%len(leases):]
	if !st.flag {
		some = some[:1]
	}
	w.note("  %s of %d", names[verdict], len(some))
	w.settle(some, verdict, []time.Duration{time.Second, time.Hour}[st.target%2])
}

// handleAllOf lets a node claim what is due and handle it.
func (w *world) handleAllOf(st step) {
	n := w.node(st)
	if !n.alive {
		return
	}
	for _, s := range n.sources {
		w.claim(n, s, 500, time.Minute)
	}
	w.settle(n.leases(), exchange.Ack, 0)
}

func (w *world) extend(st step) {
	n := w.node(st)
	for _, r := range n.leases() {
		s := n.source(r.place)
		s.sequence++
		reply := w.send(s, &exchange.Request{
			Incarnation: s.incarnation, Sequence: s.sequence, LeaseTTL: time.Minute, Flow: s.flow,
			Extend: []exchange.Held{{ID: r.lease.ID, Token: r.lease.Token}},
		})
		switch {
		case len(reply.Refused) > 0 && r.live():
			w.fail("the lease of %s is valid, and it is not extended", r.id)
		case len(reply.Refused) > 0:
			r.ended = true
		default:
			r.lease.Token, r.until = reply.Extended, time.Now().Add(time.Minute)
		}
	}
}

// replay sends an exchange again, whose answer was lost.
func (w *world) replay(st step) {
	n := w.node(st)
	for _, s := range n.sources {
		if !s.paused && !s.withheld {
			s.sequence++
			r := &exchange.Request{Incarnation: s.incarnation, Sequence: s.sequence, Want: 2, LeaseTTL: time.Minute, Flow: s.flow}
			w.send(s, r)
			w.claimed(n, s, w.send(s, r), time.Minute)
		}
	}
}

func (w *world) sweep(st step) {
	if n := w.node(st); n.alive {
		w.follow(n)
	}
}

func (w *world) orphans(st step) {
	for _, s := range w.node(st).sources {
		_, err := s.src.RemoveOrphans(w.ctx)
		w.must(err, "collect orphans")
	}
}

func (w *world) crashOne(st step) { w.crash(w.node(st)) }

func (w *world) startOne(st step) {
	if n := w.node(st); !n.alive {
		w.start(n)
	}
}

// drainOne ends a node, which gives its leases back.
func (w *world) drainOne(st step) {
	n := w.node(st)
	w.settle(n.leases(), exchange.Release, 0)
	w.crash(n)
}
