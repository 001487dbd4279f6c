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
	name    string
	joins   []*waiter               // to be sent
	gives   []giving                // to be sent
	look    bool                    // to be sent, with or without the others
	waiting map[gate.Ticket]*waiter // those with a ticket
	line    []gate.Ticket           // theirs in order, and some of those who have gone
	turn    *Turn                   // nil: another process has it, or nobody
	flight  *gateFlight             // under way; nil: none
	parked  bool                    // flight failed, and waits for the store to be back
	gathers bool                    // what is to be sent waits for more; see gather
	floor   gate.Ticket             // the highest ticket that had a turn
}

// giving is a ticket to be given back.
type giving struct {
	ticket gate.Ticket
	turn   *Turn // whose release it is; nil: a ticket that is not wanted
	passed bool  // it had the turn, which the store may not know
}

// gateFlight is a request that is sent until it is answered.
type gateFlight struct {
	request *gate.Request
	gives   []giving  // the first ops
	joins   []*waiter // the others
	sent    time.Time // before it was sent first; of a look, last
	tries   int
}

// opsAtOnce bounds a request.
const opsAtOnce = 500

func (k *gatekeeper) queue(name string) *gateQueue {
	q := k.queues[name]
	if q == nil {
		q = &gateQueue{name: name, waiting: map[gate.Ticket]*waiter{}}
		k.queues[name] = q
	}
	return q
}

func (q *gateQueue) give(g giving) { q.gives = append(q.gives, g) }

// givesBack reports whether a ticket is on its way back.
func (q *gateQueue) givesBack(t gate.Ticket) bool {
	return slices.ContainsFunc(q.gives, func(g giving) bool { return g.ticket == t })
}

// unjoin removes a request that was not sent yet.
func (q *gateQueue) unjoin(w *waiter) {
	if i := slices.Index(q.joins, w); i >= 0 {
		q.joins = slices.Delete(q.joins, i, i+1)
	}
}

// pump sends what is to be sent at a gate, unless a request is under way.
func (k *gatekeeper) pump(q *gateQueue) {
	if q.flight != nil || q.gathers {
		return
	}
	if len(q.joins)+len(q.gives) == 0 && !q.look {
		if q.turn == nil && len(q.waiting) == 0 {
			delete(k.queues, q.name)
			k.closed()
		}
		return
	}
	f := &gateFlight{}
	f.gives, q.gives = cut(q.gives, opsAtOnce)
	f.joins, q.joins = cut(q.joins, opsAtOnce-len(f.gives))
	k.sequence++
	f.request = &gate.Request{
		Gate: q.name, Process: k.life.process, Sequence: k.sequence, Floor: max(k.floor, q.floor), Terms: k.cfg.Terms,
	}
	for _, g := range f.gives {
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
	q.look, q.flight = false, f
	k.fly(q)
}

// cut takes up to n off the front of a list.
func cut[T any](list []T, n int) (front, rest []T) {
	if len(list) <= n {
		return list, nil
	}
	return list[:n:n], list[n:]
}

// fly sends a queue's flight, at first or again.
func (k *gatekeeper) fly(q *gateQueue) {
	f := q.flight
	q.parked = false
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
	life, store := k.life, k.cfg.Store
	k.gates.io.Go(func() {
		reply, err := host.Safely("exchange at a gate", func() (*gate.Reply, error) { return store.Exchange(life.ctx, f.request) })
		life.tell(gateAnswered{life, q, f, reply, err})
	})
}

func (k *gatekeeper) answered(m gateAnswered) {
	q, f := m.queue, m.flight
	if m.err != nil {
		k.failed(q, m.err)
		k.pump(q)
		return
	}
	q.flight = nil
	for i, g := range f.gives {
		k.given(g, m.reply.Done[i].Had)
	}
	for i, w := range f.joins {
		k.joined(q, f, w, m.reply.Done[len(f.gives)+i].Ticket, m.reply.Since)
	}
	q.look = q.look || m.reply.More
	k.turnIs(q, f, m.reply)
	if len(f.gives) > 0 && q.turn != nil {
		q.gathers = true
		k.life.tell(gather{k.life, q, false})
		return
	}
	k.pump(q)
}

// gather lets those who were just answered go on before the next request: where
// turns are short, who has given one back joins again, and who has got one gives
// it back, in one round trip instead of two.
type gather struct {
	life  *gateLife
	queue *gateQueue
	over  bool
}

func (k *gatekeeper) gather(m gather) {
	if !m.over {
		runtime.Gosched()
		k.life.tell(gather{m.life, m.queue, true}) // behind what they have sent
		return
	}
	m.queue.gathers = false
	k.pump(m.queue)
}

func (k *gatekeeper) given(g giving, had bool) {
	switch {
	case g.turn == nil:
	case had:
		g.turn.settle(turnReleased, nil)
	default:
		g.turn.settle(turnGone, ErrTurnLost)
	}
}

func (k *gatekeeper) joined(q *gateQueue, f *gateFlight, w *waiter, ticket, since gate.Ticket) {
	switch {
	case ticket == 0:
		k.refuse(w, ErrHeld)
	case w.gone:
		q.give(giving{ticket: ticket})
	default:
		w.ticket, w.since, w.placed = ticket, since, true
		q.lineUp(w)
		if k.cfg.Observe != nil {
			k.cfg.Observe(TicketTaken{q.name, ticket, f.sent, time.Now()})
		}
	}
}

// turnIs takes what the store says of the turn.
func (k *gatekeeper) turnIs(q *gateQueue, f *gateFlight, reply *gate.Reply) {
	held := reply.Held
	k.pulse.clock.read(reply.Now, f.sent)
	until := f.sent.Add(min(reply.Remaining, k.cfg.Lease))
	if t := q.turn; t != nil {
		known := gate.Ticket(t.Fence) == held
		switch {
		case !known && !t.behind(held) && !t.began.Before(f.sent):
			return // the answer may be from before the turn; clocks are coarse
		case !known && !t.behind(held), !t.extend(f.sent, until):
			k.lose(t)
		default:
			t.ahead = t.ahead && !known
			return
		}
	}
	if held == 0 || q.givesBack(held) {
		return
	}
	w := q.waiting[held]
	delete(q.waiting, held)
	switch {
	case w == nil: // nobody here wants it
		q.give(giving{ticket: held})
	case !time.Now().Before(until): // it took too long to get here
		q.give(giving{ticket: held})
		k.rejoin(q, w)
	default:
		k.grant(q, w, f.sent, until)
	}
}

// signalled takes a turn that was granted by somebody else's step. The grant
// waits for a confirmation for a while, and that is how long the turn is good at
// first: a turn that is over by then needs no confirmation.
func (k *gatekeeper) signalled(s gate.Signal) {
	q := k.queue(s.Gate)
	w := q.waiting[s.Ticket]
	good, known := k.pulse.clock.left(s.Until)
	if w == nil || q.turn != nil || !known || good < k.cfg.Signal/2 {
		k.look(s.Gate)
		return
	}
	now := time.Now()
	delete(q.waiting, s.Ticket)
	k.grant(q, w, now, now.Add(min(good, k.cfg.Signal)))
	life, turn := k.life, w.turn
	turn.asks = time.AfterFunc(k.cfg.Signal/5, func() { life.tell(confirm{life, turn}) })
}

func (k *gatekeeper) grant(q *gateQueue, w *waiter, sent, until time.Time) {
	k.lift(q, w.ticket)
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
func (k *gatekeeper) lift(q *gateQueue, ticket gate.Ticket) {
	q.floor = max(q.floor, ticket)
	now := k.pulse.clock.store
	if !now.IsZero() && int64(ticket) <= now.Add(maxTicketAhead).UnixMicro() { // below 2^53
		k.floor = max(k.floor, ticket)
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
	f := q.flight
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
		q.parked = true
		k.unreachable(err)
	case errors.Is(err, exchange.ErrStale):
		k.sequence++
		f.request.Sequence = k.sequence
		k.fly(q)
	default:
		q.flight = nil
		for _, w := range f.joins {
			k.refuse(w, err)
		}
		for _, g := range f.gives {
			if g.turn != nil {
				g.turn.settle(turnGone, err)
			}
		}
		k.cfg.Logger.Error("a gate cannot be used", "gate", q.name, "err", err)
	}
}
