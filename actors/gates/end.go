package gates

import "github.com/wakebell/wakebell/messages/gate"

// stop ends what the incarnation has: Redis passes over its tickets, and its
// turns go on when their leases end.
func (k *gatekeeper) stop(cause error) {
	k.life.cancel()
	k.pulse.stop()
	for _, q := range k.queues {
		k.endQueue(q, cause)
		back := q.gives
		if q.flight != nil {
			back = append(back, q.flight.gives...)
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
		q.give(giving{ticket: gate.Ticket(t.Fence), passed: t.ahead})
		q.turn = nil
		k.disown(t, true)
		t.settle(turnGone, ErrTurnLost)
	}
	for ticket, w := range q.waiting {
		q.give(giving{ticket: ticket})
		k.refuse(w, cause)
	}
	clear(q.waiting)
	for _, w := range q.joins {
		k.refuse(w, cause)
	}
	q.joins = nil
	if q.flight != nil {
		for _, w := range q.flight.joins {
			w.gone = true
			k.refuse(w, cause)
		}
	}
}

// close refuses everybody from now on, and tells done once all is given back.
func (k *gatekeeper) close(done chan struct{}) {
	k.closing, k.empty = true, append(k.empty, done)
	for _, q := range k.queues {
		k.endQueue(q, ErrClosed)
		k.pump(q)
	}
	k.closed()
}

func (k *gatekeeper) closed() {
	if !k.closing || len(k.queues) > 0 {
		return
	}
	for _, done := range k.empty {
		close(done)
	}
	k.empty = nil
}
