package gates

import (
	"errors"
	"runtime"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/messages/gate"
)

// ticketReturn is a ticket to be returned.
type ticketReturn struct {
	ticket gate.Ticket
	turn   *Turn // the turn that is released; nil: an unwanted ticket
	passed bool  // it had the turn, which the store may not know
}

// gateRequest is a request that is repeated until it is answered.
type gateRequest struct {
	request *gate.Request
	returns []ticketReturn // the first ops
	joins   []*waiter      // the others
	sent    time.Time      // before the first attempt; without ops, before the last
	tries   int
}

// maxOps bounds a request.
const maxOps = 500

// pump sends the next request of a gate, unless one is in flight.
func (k *gatekeeper) pump(q *gateQueue) {
	if q.inFlight != nil || q.coalescing {
		return
	}
	if len(q.joins)+len(q.returns) == 0 && !q.poll {
		if q.turn == nil && len(q.waiting) == 0 {
			k.forget(q)
			k.reportEmpty()
		}
		return
	}
	f := &gateRequest{}
	f.returns, q.returns = cut(q.returns, maxOps)
	f.joins, q.joins = cut(q.joins, maxOps-len(f.returns))
	k.sequence++
	f.request = &gate.Request{
		Gate: q.name, Process: k.incarnation.process, Sequence: k.sequence, Floor: max(q.part.floor, q.floor), Terms: k.cfg.Terms,
	}
	for _, g := range f.returns {
		op := gate.Op{Kind: gate.Give, Ticket: g.ticket}
		if g.passed {
			op.Kind = gate.GivePassed
		}
		f.request.Ops = append(f.request.Ops, op)
	}
	for _, w := range f.joins {
		op := gate.Op{Kind: gate.Join, Number: w.number}
		if w.try {
			op.Kind = gate.Try
		}
		f.request.Ops = append(f.request.Ops, op)
	}
	q.poll, q.inFlight = false, f
	k.send(q)
}

// cut splits off the first n elements of a list.
func cut[T any](list []T, n int) (front, rest []T) {
	if len(list) <= n {
		return list, nil
	}
	return list[:n:n], list[n:]
}

// send sends a queue's request, for the first time or again.
func (k *gatekeeper) send(q *gateQueue) {
	f := q.inFlight
	q.blocked = false
	if f.tries == 0 {
		f.sent = time.Now()
	} else if len(f.request.Ops) == 0 { // a new poll: the state that the one before read may be outdated
		f.sent = time.Now()
		k.sequence++
		again := *f.request
		again.Sequence = k.sequence
		f.request = &again
	}
	f.tries++
	incarnation, store := k.incarnation, k.cfg.Store
	k.gates.io.Go(func() {
		reply, err := host.Recovered("exchange at a gate", func() (*gate.Reply, error) { return store.Exchange(incarnation.ctx, f.request) })
		incarnation.send(gateAnswered{incarnation, q, f, reply, err})
	})
}

func (k *gatekeeper) answered(m gateAnswered) {
	q, f := m.queue, m.request
	if m.err != nil {
		k.failed(q, m.err)
		k.answerQuestions(q)
		k.pump(q)
		return
	}
	q.inFlight = nil
	for i, g := range f.returns {
		k.ticketReturned(g, m.reply.Done[i].Had)
	}
	for i, w := range f.joins {
		k.joined(q, f, w, m.reply.Done[len(f.returns)+i].Ticket, m.reply.Since)
	}
	q.poll = q.poll || m.reply.More
	k.applyTurn(q, f, m.reply)
	k.answerQuestions(q)
	if len(f.returns) > 0 && q.turn != nil {
		q.coalescing = true
		k.incarnation.send(coalesce{k.incarnation, q, false})
		return
	}
	k.pump(q)
}

// coalesce delays the next request until the callers that were just answered have
// run: with short turns, a caller that has released joins again, and one that was
// granted the turn releases it, in one round trip instead of two.
type coalesce struct {
	incarnation *incarnation
	queue       *gateQueue
	second      bool
}

func (k *gatekeeper) coalesce(m coalesce) {
	if !m.second {
		runtime.Gosched()
		k.incarnation.send(coalesce{m.incarnation, m.queue, true}) // after the messages that they have sent
		return
	}
	m.queue.coalescing = false
	k.pump(m.queue)
}

func (k *gatekeeper) ticketReturned(g ticketReturn, had bool) {
	switch {
	case g.turn == nil:
	case had:
		g.turn.settle(turnReleased, nil)
	default:
		g.turn.settle(turnGone, ErrTurnLost)
	}
}

func (k *gatekeeper) joined(q *gateQueue, f *gateRequest, w *waiter, ticket, since gate.Ticket) {
	switch {
	case ticket == 0:
		k.refuse(w, ErrHeld)
	case w.gone:
		q.returnTicket(ticketReturn{ticket: ticket})
	default:
		w.ticket, w.since, w.placed = ticket, since, true
		q.enqueue(w)
		if k.cfg.Observe != nil {
			k.cfg.Observe(TicketTaken{q.name, ticket, f.sent, time.Now()})
		}
	}
}

// failed processes a request that was not answered, or was refused.
func (k *gatekeeper) failed(q *gateQueue, err error) {
	f := q.inFlight
	switch {
	case errors.Is(err, exchange.ErrUnavailable):
		// Waiters with a ticket keep waiting. Those without one are answered at
		// once; if the request was run nevertheless, their tickets are returned.
		for _, w := range f.joins {
			if !w.placed {
				w.gone = true
				k.refuse(w, err)
			}
		}
		q.blocked = true
		k.storeUnavailable(q.part, err)
	case errors.Is(err, exchange.ErrStale):
		k.sequence++
		f.request.Sequence = k.sequence
		k.send(q)
	default:
		q.inFlight = nil
		for _, w := range f.joins {
			k.refuse(w, err)
		}
		for _, g := range f.returns {
			if g.turn != nil {
				g.turn.settle(turnGone, err)
			}
		}
		if skipped, ok := k.cfg.logLimit.Allow("unusable " + q.name); ok {
			k.cfg.Logger.Error("gate not usable", "gate", q.name, "err", err, "skipped", skipped)
		}
	}
}
