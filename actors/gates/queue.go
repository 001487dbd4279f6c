package gates

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// gateQueue is the process's state at one gate. It exists only while it is not
// empty.
type gateQueue struct {
	name       string
	part       *part
	joins      []*waiter               // to be sent
	returns    []ticketReturn          // to be sent
	poll       bool                    // to be sent, even without joins and returns
	waiting    map[gate.Ticket]*waiter // those with a ticket
	order      []gate.Ticket           // their tickets in order, and some obsolete ones
	turn       *Turn                   // nil: another process has it, or none has
	left       gate.Ticket             // of a turn that has ended here, and is left to its lease; 0: none
	inFlight   *gateRequest            // nil: none
	blocked    bool                    // inFlight failed, and waits until the store is available
	coalescing bool                    // the next request is delayed; see coalesce
	floor      gate.Ticket             // the highest ticket that had a turn
	questions  []isWaiting             // to be answered when inFlight is answered
}

func (k *gatekeeper) queue(name string) *gateQueue {
	q := k.queues[name]
	if q == nil {
		q = &gateQueue{name: name, part: k.partOf(name), waiting: map[gate.Ticket]*waiter{}}
		k.queues[name], q.part.queues[name] = q, q
	}
	return q
}

// forget removes a queue that is empty.
func (k *gatekeeper) forget(q *gateQueue) {
	delete(k.queues, q.name)
	delete(q.part.queues, q.name)
}

func (q *gateQueue) returnTicket(g ticketReturn) { q.returns = append(q.returns, g) }

// returning reports whether a ticket is queued to be returned.
func (q *gateQueue) returning(t gate.Ticket) bool {
	return slices.ContainsFunc(q.returns, func(g ticketReturn) bool { return g.ticket == t })
}

// removeJoin removes a request that was not sent yet.
func (q *gateQueue) removeJoin(w *waiter) {
	if i := slices.Index(q.joins, w); i >= 0 {
		q.joins = slices.Delete(q.joins, i, i+1)
	}
}

// applyTurn processes what the store says about the turn.
func (k *gatekeeper) applyTurn(q *gateQueue, f *gateRequest, reply *gate.Reply) {
	held := reply.Held
	if f.tries <= 1 || len(f.returns)+len(f.joins) == 0 { // else it is unknown which attempt read the clock
		q.part.heartbeat.clock.read(reply.Now, f.sent)
	}
	until := f.sent.Add(min(reply.Remaining, k.cfg.Lease))
	if t := q.turn; t != nil {
		known := gate.Ticket(t.Fence) == held
		switch {
		case !known && !t.predecessor(held) && !t.began.Before(f.sent):
			return // the reply may be older than the turn; clocks are coarse
		case !known && !t.predecessor(held), !t.extend(f.sent, until):
			k.lose(t)
		default:
			t.unreported = t.unreported && !known
			return
		}
	}
	if held == 0 || held == q.left || q.returning(held) {
		return
	}
	w := q.waiting[held]
	delete(q.waiting, held)
	switch {
	case w == nil: // its waiter has given up
		q.returnTicket(ticketReturn{ticket: held})
	case !time.Now().Before(until): // the reply arrived too late
		q.returnTicket(ticketReturn{ticket: held})
		k.rejoin(q, w)
	default:
		k.grant(q, w, f.sent, until, false)
	}
}

func (k *gatekeeper) grant(q *gateQueue, w *waiter, sent, until time.Time, handedOver bool) {
	k.raiseFloor(q, w.ticket)
	w.turn = k.newTurn(w, w.ticket, sent, until)
	w.answered, q.turn = true, w.turn
	k.countWaiting(w, false)
	k.cfg.Metrics.Gate(w.gate).Granted(k.incarnation.ctx, w.turn, w.turn.Waited, handedOver)
	if w.owner != nil {
		w.turn.owner = w
		k.grantOwner(w)
		return
	}
	w.answer <- turnAnswer{turn: w.turn}
}

// maxTicketAhead bounds how far ahead of the store's clock a ticket raises the
// floor of other gates.
const maxTicketAhead = 24 * time.Hour

// raiseFloor records a ticket that has the turn: no later ticket of the part may be
// below it, even if the store loses data. A ticket far ahead of the clock belongs to a gate
// whose tokens were raised, and does not affect other gates.
func (k *gatekeeper) raiseFloor(q *gateQueue, ticket gate.Ticket) {
	q.floor = max(q.floor, ticket)
	now := q.part.heartbeat.clock.store
	if !now.IsZero() && int64(ticket) <= now.Add(maxTicketAhead).UnixMicro() {
		q.part.floor = max(q.part.floor, ticket)
	}
}

// rejoin requests a new ticket for a waiter that lost its own.
func (k *gatekeeper) rejoin(q *gateQueue, w *waiter) {
	w.ticket = 0
	k.numbers++
	w.number = k.numbers
	q.joins = append(q.joins, w)
}

// answerWaiting reports whether a ticket is waiting in this process. While a
// request to join is in flight, the store may have issued the ticket already: then
// the answer waits for the reply.
func (k *gatekeeper) answerWaiting(m isWaiting) {
	q := k.queues[m.gate]
	switch {
	case q == nil:
		m.answer <- false
	case q.waiting[m.ticket] != nil:
		m.answer <- true
	case q.turn != nil && gate.Ticket(q.turn.Fence) == m.ticket, q.inFlight == nil, len(q.inFlight.joins) == 0:
		m.answer <- false
	default:
		q.questions = append(q.questions, m)
	}
}

// answerQuestions answers the questions that waited for the reply of a request.
func (k *gatekeeper) answerQuestions(q *gateQueue) {
	questions := q.questions
	q.questions = nil
	for _, m := range questions {
		m.answer <- q.waiting[m.ticket] != nil
	}
}
