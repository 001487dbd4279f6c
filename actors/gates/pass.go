package gates

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// A turn is the process's for a lease, and where the next ticket is the
// process's too, nobody else has anything to say: the turn is passed on at once,
// within the same lease, and the store follows with the next request. So a gate
// that is busy inside a process is not bound by round trips.

// lineUp takes a waiter who has a ticket, behind all others.
func (q *gateQueue) lineUp(w *waiter) {
	if len(q.line) > 2*len(q.waiting)+16 { // most have gone
		q.line = slices.DeleteFunc(q.line, func(t gate.Ticket) bool { return q.waiting[t] == nil })
	}
	q.waiting[w.ticket] = w
	q.line = append(q.line, w.ticket)
}

// next is the waiter of the process with the lowest ticket; nil: there is none.
func (q *gateQueue) next() *waiter {
	for len(q.line) > 0 {
		if w := q.waiting[q.line[0]]; w != nil {
			return w
		}
		q.line = q.line[1:]
	}
	return nil
}

// behind reports whether the store, which says that a ticket has the turn, has
// yet to be told that it was passed on to this one.
func (t *Turn) behind(held gate.Ticket) bool {
	return t.ahead && t.root <= held && held < gate.Ticket(t.Fence)
}

// handOver ends a turn that is held, and gives it to the next of the process or
// back to the store.
func (k *gatekeeper) handOver(q *gateQueue, t *Turn) {
	t.state = turnReleasing
	t.stop(nil)
	q.turn = nil
	k.disown(t, false)
	next := q.next()
	if next != nil && !k.follows(next, t) {
		next = nil
	}
	if next == nil && !t.ahead {
		q.give(giving{ticket: gate.Ticket(t.Fence), turn: t})
		return
	}
	// The lease says that the turn was ours to its end, and nobody needs more.
	t.settle(turnReleased, nil)
	q.give(giving{ticket: gate.Ticket(t.Fence), passed: t.ahead})
	if next == nil {
		return
	}
	delete(q.waiting, next.ticket)
	k.grant(q, next, t.confirmed, t.until)
	next.turn.ahead, next.turn.root = true, gate.Ticket(t.Fence)
	if t.ahead {
		next.turn.root = t.root
	}
}

// follows reports whether no ticket of another process can lie between a turn
// and a waiter's ticket, and the lease is good for a while.
func (k *gatekeeper) follows(w *waiter, t *Turn) bool {
	held := gate.Ticket(t.Fence)
	return w.since != 0 && w.since <= held && held < w.ticket && time.Until(t.until) >= k.cfg.Signal/2
}
