package gates

import "github.com/wakebell/wakebell/messages/gate"

// stop ends what the incarnation has: Redis passes over its tickets, and its
// turns go on when their leases end.
func (k *gatekeeper) stop(cause error) {
	k.incarnation.cancel()
	k.heartbeat.stop()
	for _, q := range k.queues {
		k.endQueue(q, cause)
		back := q.returns
		if q.inFlight != nil {
			back = append(back, q.inFlight.returns...)
		}
		for _, g := range back { // their answers have no receiver
			if g.turn != nil {
				g.turn.settle(turnGone, ErrTurnLost)
			}
		}
	}
}

// endQueue refuses all who wait at a gate, and ends its turn; the tickets that
// are known are to be given back.
func (k *gatekeeper) endQueue(q *gateQueue, cause error) {
	if t := q.turn; t != nil {
		t.stop(cause)
		q.returnTicket(ticketReturn{ticket: gate.Ticket(t.Fence), passed: t.unreported})
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

// close refuses everybody from now on, and tells done once all is given back.
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
