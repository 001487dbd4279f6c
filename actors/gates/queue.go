package gates

import (
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
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

// giving is a ticket to be given back.
type ticketReturn struct {
	ticket gate.Ticket
	turn   *Turn // whose release it is; nil: a ticket that is not wanted
	passed bool  // it had the turn, which the store may not know
}

// gateFlight is a request that is sent until it is answered.
type gateRequest struct {
	request *gate.Request
	returns []ticketReturn // the first ops
	joins   []*waiter      // the others
	sent    time.Time      // before it was sent first; of a look, last
	tries   int
}

// opsAtOnce bounds a request.
const maxOps = 500

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

// pump sends what is to be sent at a gate, unless a request is under way.
func (k *gatekeeper) pump(q *gateQueue) {
	if q.inFlight != nil || q.coalescing {
		return
	}
	if len(q.joins)+len(q.returns) == 0 && !q.poll {
		if q.turn == nil && len(q.waiting) == 0 {
			delete(k.queues, q.name)
			k.reportEmpty()
		}
		return
	}
	f := &gateRequest{}
	f.returns, q.returns = cut(q.returns, maxOps)
	f.joins, q.joins = cut(q.joins, maxOps-len(f.returns))
	k.sequence++
	f.request = &gate.Request{
		Gate: q.name, Process: k.incarnation.process, Sequence: k.sequence, Floor: max(k.ticketFloor, q.floor), Terms: k.cfg.Terms,
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

// cut takes up to n off the front of a list.
func cut[T any](list []T, n int) (front, rest []T) {
	if len(list) <= n {
		return list, nil
	}
	return list[:n:n], list[n:]
}

// fly sends a queue's flight, at first or again.
func (k *gatekeeper) send(q *gateQueue) {
	f := q.inFlight
	q.blocked = false
	if f.tries == 0 {
		f.sent = time.Now()
	} else if len(f.request.Ops) == 0 { // a new look: what the one before saw may be over
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
	if len(f.returns) > 0 && q.turn != nil {
		q.coalescing = true
		k.incarnation.send(coalesce{k.incarnation, q, false})
		return
	}
	k.pump(q)
}

// gather lets those who were just answered go on before the next request: where
// turns are short, who has given one back joins again, and who has got one gives
// it back, in one round trip instead of two.
type coalesce struct {
	incarnation *incarnation
	queue       *gateQueue
	second      bool
}

func (k *gatekeeper) coalesce(m coalesce) {
	if !m.second {
		runtime.Gosched()
		k.incarnation.send(coalesce{m.incarnation, m.queue, true}) // behind what they have sent
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

// signalled takes a turn that was granted by somebody else's step. The grant
// waits for a confirmation for a while, and that is how long the turn is good at
// first: a turn that is over by then needs no confirmation.
func (k *gatekeeper) signalReceived(s gate.Signal) {
	q := k.queue(s.Gate)
	w := q.waiting[s.Ticket]
	good, known := k.heartbeat.clock.left(s.Until)
	if w == nil || q.turn != nil || !known || good < k.cfg.Signal/2 {
		k.requestPoll(s.Gate)
		return
	}
	now := time.Now()
	delete(q.waiting, s.Ticket)
	k.grant(q, w, now, now.Add(min(good, k.cfg.Signal)))
	incarnation, turn := k.incarnation, w.turn
	turn.confirmTimer = time.AfterFunc(k.cfg.Signal/5, func() { incarnation.send(confirm{incarnation, turn}) })
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

// failed deals with a request that was not answered, or refused.
func (k *gatekeeper) failed(q *gateQueue, err error) {
	f := q.inFlight
	switch {
	case errors.Is(err, exchange.ErrUnavailable):
		// Whoever had a place waits on. Whoever had none is told at once; if the
		// request was run all the same, what it took is given back.
		for _, w := range f.joins {
			if !w.placed {
				w.gone = true
				k.refuse(w, err)
			}
		}
		q.blocked = true
		k.storeUnavailable(err)
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
		k.cfg.Logger.Error("a gate cannot be used", "gate", q.name, "err", err)
	}
}
