package gates

import "github.com/wakebell/wakebell/messages/gate"

// stop ends the incarnation: Redis skips its tickets, and its turns pass on when
// their leases expire.
func (k *gatekeeper) stop(cause error) {
	k.incarnation.cancel()
	for _, p := range k.parts {
		p.heartbeat.stop()
	}
	for _, q := range k.queues {
		k.endQueue(q, cause)
		back := q.returns
		if q.inFlight != nil {
			back = append(back, q.inFlight.returns...)
		}
		for _, g := range back { // the replies will not be received
			if g.turn != nil {
				g.turn.settle(turnGone, ErrTurnLost)
			}
		}
	}
}

// endQueue refuses all waiters at a gate, and ends its turn; known tickets are
// queued to be returned. A turn with a ttl passes on when its lease expires.
func (k *gatekeeper) endQueue(q *gateQueue, cause error) {
	if t := q.turn; t != nil {
		t.stop(cause)
		k.measureEnd(t, true)
		if t.owner != nil && t.owner.ttl > 0 { // its owner may not hear of the end, and relies on the lease
			q.left = gate.Ticket(t.Fence)
		} else {
			q.returnTicket(ticketReturn{ticket: gate.Ticket(t.Fence), passed: t.unreported})
		}
		q.turn = nil
		k.turnEnded(t, true)
		t.settle(turnGone, ErrTurnLost)
	}
	for ticket, w := range q.waiting {
		q.returnTicket(ticketReturn{ticket: ticket})
		k.refuse(w, cause)
	}
	clear(q.waiting)
	for _, w := range q.joins {
		k.refuse(w, cause)
	}
	q.joins = nil
	if q.inFlight != nil {
		for _, w := range q.inFlight.joins {
			w.gone = true
			k.refuse(w, cause)
		}
	}
}

// close refuses all requests from now on, and closes done once all tickets are
// returned.
func (k *gatekeeper) close(done chan struct{}) {
	k.closed, k.onEmpty = true, append(k.onEmpty, done)
	for _, q := range k.queues {
		k.endQueue(q, ErrClosed)
		k.pump(q)
	}
	k.reportEmpty()
}

func (k *gatekeeper) reportEmpty() {
	if !k.closed || len(k.queues) > 0 {
		return
	}
	for _, done := range k.onEmpty {
		close(done)
	}
	k.onEmpty = nil
}
