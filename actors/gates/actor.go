package gates

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/gate"
)

// gatekeeper is the gates actor: it owns the process's places and turns at all
// gates, its beat and its one subscription. Requests of one gate go one at a
// time and gather meanwhile, so a busy gate costs one round trip a turn.
type gatekeeper struct {
	gates *Gates
	cfg   *Config
	self  *actor.PID
	root  *actor.RootContext

	incarnation  *incarnation
	queues       map[string]*gateQueue
	owners       map[string]*turnOwner
	remotePlaces remotePlaces // places and turns of visitors

	sequence    uint64 // of exchanges
	numbers     uint64 // of joins
	ticketFloor gate.Ticket

	heartbeat heartbeat
	listening bool
	closed    bool
	onEmpty   []chan struct{} // closed once all is given back
}

// gateLife is an incarnation. What it began carries it, because mail outlives a
// restart.
type incarnation struct {
	ctx     context.Context
	cancel  context.CancelFunc
	process string
	send    func(message any) // sends to the actor while the life lasts
}

// waiter is a request for a turn, from the question to the answer; of an actor,
// to the end of the turn.
type waiter struct {
	gate   string
	try    bool
	asked  time.Time
	values context.Context // whose values the turn's context has
	answer chan turnAnswer // of a goroutine; has room for one
	owner  *turnOwner      // of an actor
	expiry *time.Timer     // of an actor's request with a timeout

	request, place uint64        // of an actor
	ttl            time.Duration // of an actor's turn; 0: as long as the actor's life
	lapse          *time.Timer   // ends it at lapses
	lapses         time.Time

	number   uint64
	ticket   gate.Ticket // 0: none yet
	since    gate.Ticket // no other process has a ticket from it to ours; 0: one may
	turn     *Turn
	placed   bool // it has or had a ticket
	answered bool
	gone     bool // the request was withdrawn
}

type turnAnswer struct {
	turn *Turn
	err  error
}

// What is sent to the gates actor.
type (
	acquire     struct{ waiter *waiter }
	withdraw    struct{ waiter *waiter }
	releaseTurn struct {
		turn   *Turn
		answer func(error)
	}
	closeGates struct{ done chan struct{} }
	isWaiting  struct { // whether a ticket does, in this process
		gate   string
		ticket gate.Ticket
		answer chan bool // has room for one
	}

	turnOver struct { // its lease has ended by the local clock
		incarnation *incarnation
		turn        *Turn
	}
	signalled struct {
		incarnation *incarnation
		signal      gate.Signal
	}
	confirm struct { // a turn that began with its signal is to be confirmed
		incarnation *incarnation
		turn        *Turn
	}
	gateAnswered struct {
		incarnation *incarnation
		queue       *gateQueue
		request     *gateRequest
		reply       *gate.Reply
		err         error
	}
)

// Props makes the gates actor of g.
func Props(g *Gates) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &gatekeeper{gates: g, cfg: &g.cfg} },
		actor.WithReceiverMiddleware(host.LogCrashes(g.cfg.Logger)))
}

func (k *gatekeeper) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		k.start(c)
	case *actor.Stopping:
		k.stop(ErrClosed)
	case *actor.Restarting:
		k.stop(errGatesCrashed)
	case *actor.Terminated:
		k.ownerGone(m)
	case acquire:
		k.acquire(m.waiter)
	case withdraw:
		k.withdraw(m.waiter)
	case isWaiting:
		q := k.queues[m.gate]
		m.answer <- q != nil && q.waiting[m.ticket] != nil
	case releaseTurn:
		k.release(m)
	case closeGates:
		k.close(m.done)
	case *messages.AcquireTurnRequest:
		k.requestTurn(c, m)
	case *messages.ExtendTurnRequest:
		k.extendTurn(c, m)
	case *messages.ReleaseTurnRequest:
		k.releaseOwned(c, m)
	case turnLapsed:
		k.lapsed(m)
	case gateAnswered:
		if m.incarnation == k.incarnation {
			k.answered(m)
		}
	case turnOver:
		if m.incarnation == k.incarnation && m.turn.state == turnHeld {
			k.lose(m.turn)
			k.pump(k.queue(m.turn.Gate))
		}
	case signalled:
		if m.incarnation == k.incarnation {
			k.signalReceived(m.signal)
		}
	case confirm:
		if m.incarnation == k.incarnation && m.turn.state == turnHeld {
			k.requestPoll(m.turn.Gate)
		}
	case coalesce:
		if m.incarnation == k.incarnation {
			k.coalesce(m)
		}
	case waitExpired:
		k.timeout(m)
	default:
		k.receiveHeartbeat(c.Message())
	}
}

func (k *gatekeeper) start(c actor.Context) {
	k.self, k.root = c.Self(), c.ActorSystem().Root
	k.queues, k.owners = map[string]*gateQueue{}, map[string]*turnOwner{}
	k.remotePlaces = newRemotePlaces()
	incarnation := &incarnation{process: k.cfg.Process()}
	//nolint:forbidigo // an incarnation's life is its own: it ends when its actor does
	incarnation.ctx, incarnation.cancel = context.WithCancel(context.Background())
	root, self := k.root, k.self
	incarnation.send = func(message any) {
		if incarnation.ctx.Err() == nil {
			root.Send(self, message)
		}
	}
	k.incarnation = incarnation
}

// acquire queues a request.
func (k *gatekeeper) acquire(w *waiter) {
	if k.closed {
		k.refuse(w, ErrClosed)
		return
	}
	k.listen()
	k.numbers++
	w.number = k.numbers
	q := k.queue(w.gate)
	q.joins = append(q.joins, w)
	k.pump(q)
	k.startHeartbeat()
}

// withdraw forgets a request that was given up. If its turn has
// come meanwhile, that is given back.
func (k *gatekeeper) withdraw(w *waiter) {
	if !w.gone && (!w.answered || w.turn != nil) {
		k.leave(w)
	}
}

func (k *gatekeeper) leave(w *waiter) {
	w.gone = true
	if w.turn != nil {
		k.release(releaseTurn{w.turn, nil})
		return
	}
	q := k.queue(w.gate)
	if w.ticket != 0 {
		delete(q.waiting, w.ticket)
		q.returnTicket(ticketReturn{ticket: w.ticket})
	} else { // not sent yet, or in flight: then the answer finds it gone
		q.removeJoin(w)
	}
	k.forgetWaiter(w)
	k.pump(q)
}

// release gives a turn back.
func (k *gatekeeper) release(m releaseTurn) {
	t := m.turn
	if m.answer != nil {
		t.answers = append(t.answers, m.answer)
	}
	switch {
	case t.state == turnReleased:
		t.settle(turnReleased, nil)
	case t.state == turnGone, t.incarnation != k.incarnation:
		t.settle(turnGone, ErrTurnLost)
	case t.state == turnHeld:
		q := k.queue(t.Gate)
		if t.ctx.Err() != nil || t.unreported && !time.Now().Before(t.until) { // its timer was faster than its message, or is late
			k.lose(t)
		} else {
			k.handOver(q, t)
		}
		k.pump(q)
	}
}

// lose ends a turn that is not ours any more, or may not be. It is given back
// in case that it is.
func (k *gatekeeper) lose(t *Turn) {
	q := k.queue(t.Gate)
	t.stop(ErrTurnLost)
	if q.turn == t {
		q.turn = nil
	}
	q.returnTicket(ticketReturn{ticket: gate.Ticket(t.Fence), passed: t.unreported})
	k.turnEnded(t, true)
	t.settle(turnGone, ErrTurnLost)
	principal := ""
	if t.owner != nil && t.owner.owner != nil {
		principal = t.owner.owner.principal
	}
	if skipped, ok := k.cfg.logLimit.Allow("lost " + principal); ok {
		k.cfg.Logger.Warn("a turn was lost", "gate", t.Gate, "fence", t.Fence, "owner", principal, "skipped", skipped)
	}
}

// refuse answers a request with an error.
func (k *gatekeeper) refuse(w *waiter, err error) {
	if w.answered {
		return
	}
	w.answered = true
	if w.owner != nil {
		k.refuseOwner(w, err)
		return
	}
	w.answer <- turnAnswer{err: err}
}

// look has something done at a gate by itself.
func (k *gatekeeper) requestPoll(name string) {
	q := k.queue(name)
	q.poll = true
	k.pump(q)
}
