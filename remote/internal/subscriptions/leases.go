package subscriptions

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// A batch of leases is bounded, also by half of MaxMessage, so that it fits into a frame with
	// others.
	maxLeases     = 500
	maxLeaseBytes = 1 << 20
	// waitFor is how long a lease waits for a subscriber before it is released.
	waitFor = 500 * time.Millisecond
)

// arrived processes a batch from the topic's poller.
func (h *hub) arrived() {
	pending := h.arrivals.collect()
	now := time.Now()
	for _, l := range pending.leases {
		h.lease(l, now)
	}
	h.extended(pending.extended, now)
	for _, m := range pending.ended {
		h.leaseEnded(m)
	}
	if len(pending.leases) > 0 {
		h.later()
	}
}

func (h *hub) lease(m *poller.ForwardedLease, now time.Time) {
	m.Topic = h.topic // as requests name it: without the prefix of the System
	l := &held{lease: m, size: sizeOf(m.Lease), since: now, until: m.Until().Add(time.Second)}
	h.held[m.GetDelivery()] = l
	l.large = h.exceedsFrame(l)
	switch {
	case l.large && h.onlyLinks():
		l.lease.Answer(m.Reject(fmt.Errorf("%w: no frame to a subscriber has room for its %d bytes (MaxMessage)", wakebelltype.ErrTooLarge, proto.Size(m.Lease))))
		h.free(l)
		return
	case len(h.waiting) == 0:
		if s := h.next(l); s != nil {
			h.give(s, l)
			return
		}
	}
	h.wait(l)
	h.deal()
}

// exceedsFrame reports whether a lease does not fit into a frame, in the message that has it. Sent
// nevertheless, it would end the link of its subscriber, and those of the next ones.
func (h *hub) exceedsFrame(l *held) bool {
	most := h.guard.Cfg.MaxMessage - 2*wire.FrameOverhead
	return l.size > most/2 && proto.Size(l.lease.Lease) > most // the latter takes longer
}

// onlyLinks reports whether there are subscribers, but neither callers of HTTP, which take leases of
// any size, nor any a moment ago.
func (h *hub) onlyLinks() bool {
	for _, s := range h.subscribers {
		if s.pulls {
			return false
		}
	}
	return len(h.subscribers) > 0 && !h.lingers()
}

// isAwaited reports whether a subscriber may take a lease that waits.
func (h *hub) isAwaited() bool { return len(h.subscribers)+len(h.asked) > 0 || h.lingers() }

// releaseWaiting releases the leases that wait. The last subscriber has left, and the topic is
// about to be closed: until then the poller may have claimed them, or claimed them again.
func (h *hub) releaseWaiting() {
	for _, l := range h.waiting {
		if !l.gone {
			l.lease.Answer(l.lease.Release())
			h.free(l)
		}
	}
	h.waiting = nil
}

// deal gives waiting leases to subscribers with credits, or releases them if none is to come. Those
// that wait for a caller of HTTP do not hold up the others.
func (h *hub) deal() {
	if !h.isAwaited() {
		h.releaseWaiting()
	}
	var large []*held
	for len(h.waiting) > 0 {
		l := h.waiting[0]
		if !l.gone {
			if s := h.next(l); s != nil {
				h.releaseMemory(l)
				h.give(s, l)
			} else if l.large {
				large = append(large, l)
			} else {
				break
			}
		}
		h.waiting[0] = nil
		h.waiting = h.waiting[1:]
	}
	if h.waiting = append(large, h.waiting...); len(h.waiting) == 0 {
		h.waiting = nil
	}
}

// next returns the next subscriber in turn that can take a lease, and charges the memory to
// it. It returns nil if there is none.
func (h *hub) next(l *held) *subscriber {
	for range h.order {
		h.turn = (h.turn + 1) % len(h.order)
		if s := h.order[h.turn]; s.to != nil && (s.pulls || !l.large) && h.room(s) && s.memory.Take(l.size) == nil {
			return s
		}
	}
	return nil
}

func (h *hub) give(s *subscriber, l *held) {
	l.of = s
	h.use(s, 1)
	s.out = append(s.out, l)
	if !h.flushing { // after the messages in the mailbox, so that leases are batched
		h.flushing = true
		h.root.Send(h.self, flush{})
	}
}

// flush sends the batches of all subscribers, without the leases that have ended meanwhile.
func (h *hub) flush() {
	h.flushing = false
	now, most := time.Now(), min(maxLeaseBytes, h.guard.Cfg.MaxMessage/2)
	for _, s := range h.order {
		left := slices.DeleteFunc(s.out, func(l *held) bool { return l.gone })
		s.out = nil
		for len(left) > 0 {
			n := batch(left, most)
			h.root.Send(s.to, h.leasesFor(s, left[:n], now))
			left = left[n:]
		}
	}
}

// batch returns how many of the leases go into a message of most bytes: one at least.
func batch(leases []*held, most int) (n int) {
	for size := 0; n < min(len(leases), maxLeases); n++ {
		if size += leases[n].size; n > 0 && size > most {
			break
		}
	}
	return n
}

// leasesFor returns a batch of leases for a subscriber.
func (h *hub) leasesFor(s *subscriber, batch []*held, now time.Time) *messages.Leases {
	m := &messages.Leases{
		Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Leases: make([]*messages.Lease, len(batch)), Clock: s.clock.At(now),
	}
	for i, l := range batch {
		l.sent = true
		m.Leases[i] = l.lease.Lease
		m.Leases[i].Ttl = ttlOf(l.lease, now)
	}
	return m
}

// verdicts applies the verdicts of a subscriber.
func (h *hub) verdicts(m *messages.Verdicts, owner string, sender *actor.PID) {
	key := subscriberKey{owner: owner, name: m.GetSubscriber()}
	s := h.subscribers[key]
	current := s != nil && same(s.to, sender)
	if current {
		s.clock.update(m.GetClock(), time.Now())
	} else if from := h.former(key, sender); from != nil {
		from.clock.update(m.GetClock(), time.Now())
	}
	settled := false
	for _, v := range m.GetVerdicts() {
		delivery, answer := wire.AnswerOf(v)
		l := h.held[delivery]
		if answer == nil || l == nil || l.of == nil || l.of.key != key || l.lease.GetId() != v.GetId() {
			continue // another subscriber's, or expired
		}
		if _, more := answer.(*messages.Extend); more {
			if former := l.of; current && former != s && !same(former.to, sender) { // an instance without a name is back
				h.move(l, s)
				h.forget(former)
			}
			l.lease.Extend()
			continue
		}
		l.lease.Answer(answer)
		h.free(l)
		settled = true
	}
	if !settled {
		return // otherwise messages without effect would cost time for each subscriber
	}
	h.deal()
	if h.capacity() != h.tuning.want {
		h.tune()
	}
}

// free forgets a settled or expired lease.
func (h *hub) free(l *held) {
	h.releaseMemory(l)
	h.answerExtending(l, Settled{})
	delete(h.held, l.lease.GetDelivery())
	if s := l.of; s != nil {
		h.use(s, -1)
		s.memory.Give(l.size)
		h.forget(s)
	}
	l.gone = true
}

// leaseEnded notifies a subscriber that it lost a lease. One that ends because the node drains stays
// until the subscriber answers, or it expires. A lease that no subscriber was sent is freed: the
// notification would arrive before it.
func (h *hub) leaseEnded(m *messages.LeaseEnded) {
	l := h.held[m.GetDelivery()]
	if l == nil {
		return
	}
	drains := m.GetReason() == messages.LeaseEnd_LEASE_END_DRAINING
	if drains && !l.sent {
		l.lease.Answer(l.lease.Release()) // no subscriber has it
	}
	if s := l.of; l.sent && s.to != nil {
		h.root.Send(s.to, &messages.LeasesEnded{
			Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Ended: []*messages.LeaseEnded{m},
		})
	}
	if drains && l.sent {
		return // its subscriber may answer
	}
	h.free(l)
	h.deal()
	h.tune()
}

// later schedules the next sweep.
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

// sweep releases leases that wait too long, and forgets leases that expired without
// a notification, as when their poller crashed.
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
	if len(h.held) > 0 || h.tuning.want != h.tuning.have || h.short() {
		h.later()
	}
}
