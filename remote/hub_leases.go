package remote

import (
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/messages"
)

const (
	// A batch of leases is bounded so that it fits a frame with others.
	maxLeases     = 500
	maxLeaseBytes = 1 << 20
	// waitFor is how long a lease waits for a subscriber that can take it,
	// before it is given back.
	waitFor = 500 * time.Millisecond
)

// arrived takes what has come from the topic's poller.
func (h *hub) arrived() {
	leases, ended := h.arrivals.take()
	now := time.Now()
	for _, l := range leases {
		h.lease(l, now)
	}
	for _, m := range ended {
		h.leaseEnded(m)
	}
	if len(leases) > 0 {
		h.later()
	}
}

func (h *hub) lease(m *actors.Handed, now time.Time) {
	l := &held{lease: m, since: now, until: now.Add(m.GetTtl().AsDuration() + time.Second)}
	h.held[m.GetDelivery()] = l
	if s := h.next(); s != nil && len(h.waiting) == 0 {
		h.give(s, l)
	} else {
		h.waiting = append(h.waiting, l)
		h.deal()
	}
}

// deal gives what waits to those who have credits.
func (h *hub) deal() {
	for len(h.waiting) > 0 {
		l := h.waiting[0]
		if !l.gone {
			s := h.next()
			if s == nil {
				return
			}
			h.give(s, l)
		}
		h.waiting[0] = nil
		h.waiting = h.waiting[1:]
	}
	h.waiting = nil
}

// next is the subscriber whose turn it is, of those that can take a lease.
func (h *hub) next() *subscriber {
	for range h.order {
		h.turn = (h.turn + 1) % len(h.order)
		if s := h.order[h.turn]; s.to != nil && h.room(s) && (s.used == 0 || s.bytes < maxOut) {
			return s
		}
	}
	return nil
}

func (h *hub) give(s *subscriber, l *held) {
	l.of = s
	h.use(s, 1)
	s.bytes += len(l.lease.GetBody())
	s.out = append(s.out, l.lease.Lease)
	if !h.flushing { // after what is in the mailbox: so leases gather
		h.flushing = true
		h.root.Send(h.self, flush{})
	}
}

// flush sends subscribers what has gathered for them.
func (h *hub) flush() {
	h.flushing = false
	for _, s := range h.order {
		for len(s.out) > 0 {
			n, size := 0, 0
			for n < len(s.out) && n < maxLeases && (n == 0 || size+len(s.out[n].GetBody()) <= maxLeaseBytes) {
				size += len(s.out[n].GetBody())
				n++
			}
			h.root.Send(s.to, &messages.Leases{
				Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Leases: s.out[:n:n],
			})
			s.out = s.out[n:]
		}
		s.out = nil
	}
}

// verdicts takes what a subscriber says of its leases.
func (h *hub) verdicts(m *messages.Verdicts, owner string) {
	key := subscriberKey{owner, m.GetSubscriber()}
	now := time.Now()
	for _, v := range m.GetVerdicts() {
		delivery, answer := answerOf(v)
		l := h.held[delivery]
		if answer == nil || l == nil || l.of == nil || l.of.key != key || l.lease.GetId() != v.GetId() {
			continue // not its own, or over
		}
		if _, more := answer.(*messages.Extend); more {
			l.lease.Extend()
			l.until = now.Add(l.lease.GetTtl().AsDuration() + time.Second)
			continue
		}
		l.lease.Answer(answer)
		h.free(l)
	}
	h.deal()
	if h.capacity() != h.tuning.want {
		h.tune()
	}
}

func answerOf(v *messages.Verdict) (delivery uint64, answer any) {
	switch k := v.GetKind().(type) {
	case *messages.Verdict_Ack:
		return k.Ack.GetDelivery(), k.Ack
	case *messages.Verdict_Nack:
		return k.Nack.GetDelivery(), k.Nack
	case *messages.Verdict_Reject:
		return k.Reject.GetDelivery(), k.Reject
	case *messages.Verdict_Release:
		return k.Release.GetDelivery(), k.Release
	case *messages.Verdict_Extend:
		return k.Extend.GetDelivery(), k.Extend
	default:
		return 0, nil
	}
}

// free forgets a lease that is over.
func (h *hub) free(l *held) {
	l.gone = true
	delete(h.held, l.lease.GetDelivery())
	if s := l.of; s != nil {
		h.use(s, -1)
		s.bytes -= len(l.lease.GetBody())
		h.forget(s)
	}
}

// leaseEnded tells a subscriber that a lease is no longer its own.
func (h *hub) leaseEnded(m *messages.LeaseEnded) {
	l := h.held[m.GetDelivery()]
	if l == nil {
		return
	}
	if s := l.of; s != nil && s.to != nil {
		h.root.Send(s.to, &messages.LeasesEnded{
			Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Ended: []*messages.LeaseEnded{m},
		})
	}
	h.free(l)
	h.deal()
	h.tune()
}

// later has the hub look again for leases that are over, as long as it has any.
func (h *hub) later() {
	if h.sweeping != nil {
		return
	}
	root, self, ctx := h.root, h.self, h.ctx
	h.sweeping = time.AfterFunc(sweepEvery, func() {
		if ctx.Err() == nil {
			root.Send(self, sweep{})
		}
	})
}

// sweep gives back what nobody can take, and forgets what the node gave up
// without a word, as when its poller crashed.
func (h *hub) sweep() {
	h.sweeping = nil
	now := time.Now()
	for _, l := range h.held {
		switch {
		case l.of == nil && now.Sub(l.since) > waitFor:
			l.lease.Answer(l.lease.Release())
			h.free(l)
		case now.After(l.until):
			h.free(l)
		}
	}
	h.deal()
	h.tune()
	if len(h.held) > 0 || h.tuning.want != h.tuning.have {
		h.later()
	}
}
