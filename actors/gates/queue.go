package gates

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// gateQueue is what the process has at one gate. It exists only while there is
// something.
type gateQueue struct {
	name       string
	joins      []*waiter               // to be sent
	returns    []ticketReturn          // to be sent
	poll       bool                    // to be sent, with or without the others
	waiting    map[gate.Ticket]*waiter // those with a ticket
	order      []gate.Ticket           // theirs in order, and some of those who have gone
	turn       *Turn                   // nil: another process has it, or nobody
	inFlight   *gateRequest            // under way; nil: none
	blocked    bool                    // flight failed, and waits for the store to be back
	coalescing bool                    // what is to be sent waits for more; see gather
	floor      gate.Ticket             // the highest ticket that had a turn
}

func (k *gatekeeper) queue(name string) *gateQueue {
	q := k.queues[name]
	if q == nil {
		q = &gateQueue{name: name, waiting: map[gate.Ticket]*waiter{}}
		k.queues[name] = q
	}
	return q
}

func (q *gateQueue) returnTicket(g ticketReturn) { q.returns = append(q.returns, g) }

// givesBack reports whether a ticket is on its way back.
func (q *gateQueue) returning(t gate.Ticket) bool {
	return slices.ContainsFunc(q.returns, func(g ticketReturn) bool { return g.ticket == t })
}

// unjoin removes a request that was not sent yet.
func (q *gateQueue) removeJoin(w *waiter) {
	if i := slices.Index(q.joins, w); i >= 0 {
		q.joins = slices.Delete(q.joins, i, i+1)
	}
}

// turnIs takes what the store says of the turn.
func (k *gatekeeper) applyTurn(q *gateQueue, f *gateRequest, reply *gate.Reply) {
	held := reply.Held
	k.heartbeat.clock.read(reply.Now, f.sent)
	until := f.sent.Add(min(reply.Remaining, k.cfg.Lease))
	if t := q.turn; t != nil {
		known := gate.Ticket(t.Fence) == held
		switch {
		case !known && !t.predecessor(held) && !t.began.Before(f.sent):
			return // the answer may be from before the turn; clocks are coarse
		case !known && !t.predecessor(held), !t.extend(f.sent, until):
			k.lose(t)
		default:
			t.unreported = t.unreported && !known
			return
		}
	}
	if held == 0 || q.returning(held) {
		return
	}
	w := q.waiting[held]
	delete(q.waiting, held)
	switch {
	case w == nil: // nobody here wants it
		q.returnTicket(ticketReturn{ticket: held})
	case !time.Now().Before(until): // it took too long to get here
		q.returnTicket(ticketReturn{ticket: held})
		k.rejoin(q, w)
	default:
		k.grant(q, w, f.sent, until)
	}
}

func (k *gatekeeper) grant(q *gateQueue, w *waiter, sent, until time.Time) {
	k.raiseFloor(q, w.ticket)
	w.turn = k.newTurn(w, w.ticket, sent, until)
	w.answered, q.turn = true, w.turn
	if w.owner != nil {
		w.turn.owner = w
		k.grantOwner(w)
		return
	}
	w.answer <- turnAnswer{turn: w.turn}
}

// maxTicketAhead bounds how far ahead of the store's clock a ticket lifts those of
// other gates.
const maxTicketAhead = 24 * time.Hour

// lift remembers a ticket that has the turn, for no later one may be below it,
// whatever the store loses. One that is far ahead of the clock is of a gate whose
// tokens were lifted, and says nothing about others.
func (k *gatekeeper) raiseFloor(q *gateQueue, ticket gate.Ticket) {
	q.floor = max(q.floor, ticket)
	now := k.heartbeat.clock.store
	if !now.IsZero() && int64(ticket) <= now.Add(maxTicketAhead).UnixMicro() { //nolint:gosec // below 2^53
		k.ticketFloor = max(k.ticketFloor, ticket)
	}
}

// rejoin takes a new ticket for one that lost its own.
func (k *gatekeeper) rejoin(q *gateQueue, w *waiter) {
	w.ticket = 0
	k.numbers++
	w.number = k.numbers
	q.joins = append(q.joins, w)
}
