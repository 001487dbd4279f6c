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
func (q *gateQueue) enqueue(w *waiter) {
	if len(q.order) > 2*len(q.waiting)+16 { // most have gone
		q.order = slices.DeleteFunc(q.order, func(t gate.Ticket) bool { return q.waiting[t] == nil })
	}
	q.waiting[w.ticket] = w
	q.order = append(q.order, w.ticket)
}

// next is the waiter of the process with the lowest ticket; nil: there is none.
func (q *gateQueue) next() *waiter {
	for len(q.order) > 0 {
		if w := q.waiting[q.order[0]]; w != nil {
			return w
		}
		q.order = q.order[1:]
	}
	return nil
}

// behind reports whether the store, which says that a ticket has the turn, has
// yet to be told that it was passed on to this one.
func (t *Turn) predecessor(held gate.Ticket) bool {
	return t.unreported && t.knownTicket <= held && held < gate.Ticket(t.Fence)
}

// handOver ends a turn that is held, and gives it to the next of the process or
// back to the store.
func (k *gatekeeper) handOver(q *gateQueue, t *Turn) {
	t.state = turnReleasing
	t.stop(nil)
	q.turn = nil
	k.turnEnded(t, false)
	next := q.next()
	if next != nil && !k.canHandOver(next, t) {
		next = nil
	}
	if next == nil && !t.unreported {
		q.returnTicket(ticketReturn{ticket: gate.Ticket(t.Fence), turn: t})
		return
	}
	// The lease says that the turn was ours to its end, and nobody needs more.
	t.settle(turnReleased, nil)
	q.returnTicket(ticketReturn{ticket: gate.Ticket(t.Fence), passed: t.unreported})
	if next == nil {
		return
	}
	delete(q.waiting, next.ticket)
	k.grant(q, next, t.confirmed, t.until)
	next.turn.unreported, next.turn.knownTicket = true, gate.Ticket(t.Fence)
	if t.unreported {
		next.turn.knownTicket = t.knownTicket
	}
}

// follows reports whether no ticket of another process can lie between a turn
// and a waiter's ticket, and the lease is good for a while.
func (k *gatekeeper) canHandOver(w *waiter, t *Turn) bool {
	held := gate.Ticket(t.Fence)
	return !k.cfg.NoHandOver && w.since != 0 && w.since <= held && held < w.ticket && time.Until(t.until) >= k.cfg.Signal/2
}
