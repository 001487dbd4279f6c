package gates

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// Handing over turns inside the process is a performance feature: the process has
// the turn for a lease, and if the next ticket is its own too, no other process
// is involved. The turn is passed on at once, within the same lease, and the
// store is informed by the next request. So the turns of a gate that is busy
// inside one process are not bound by round trips. Config.NoHandOver switches it
// off.

// enqueue appends a waiter with a ticket.
func (q *gateQueue) enqueue(w *waiter) {
	if len(q.order) > 2*len(q.waiting)+16 { // most entries are obsolete
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

// predecessor reports whether the store, which says that held has the turn, is
// only not informed yet that it was passed on to this turn.
func (t *Turn) predecessor(held gate.Ticket) bool {
	return t.unreported && t.knownTicket <= held && held < gate.Ticket(t.Fence)
}

// handOver ends a turn that is held, and passes it to the next waiter of the
// process or returns it to the store.
func (k *gatekeeper) handOver(q *gateQueue, t *Turn) {
	t.state = turnReleasing
	t.stop(nil)
	k.measureEnd(t, false)
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
	// The process had the lease until the release, so the release is confirmed.
	t.settle(turnReleased, nil)
	q.returnTicket(ticketReturn{ticket: gate.Ticket(t.Fence), passed: t.unreported})
	if next == nil {
		return
	}
	delete(q.waiting, next.ticket)
	k.grant(q, next, t.confirmed, t.until, true)
	next.turn.unreported, next.turn.knownTicket = true, gate.Ticket(t.Fence)
	if t.unreported {
		next.turn.knownTicket = t.knownTicket
	}
}

// canHandOver reports whether no ticket of another process can lie between a turn
// and a waiter's ticket, and the lease is valid for long enough.
func (k *gatekeeper) canHandOver(w *waiter, t *Turn) bool {
	held := gate.Ticket(t.Fence)
	return !k.cfg.NoHandOver && w.since != 0 && w.since <= held && held < w.ticket && time.Until(t.until) >= k.cfg.Signal/2
}
