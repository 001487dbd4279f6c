package gates

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/gate"
)

// gatekeeper is the gates actor: it owns the process's tickets and turns at all
// gates, the heartbeats and the one subscription. A gate has one request in
// flight; what arrives meanwhile is batched into the next, so that a busy gate
// costs one round trip per turn.
type gatekeeper struct {
	gates *Gates
	cfg   *Config
	self  *actor.PID
	root  *actor.RootContext

	// incarnation is one life of the actor, from its start to its crash or stop.
	// Messages of its goroutines carry it, because mailboxes outlive a restart.
	incarnation  *incarnation
	parts        map[int]*part
	queues       map[string]*gateQueue   // of all parts
	owners       map[string][]*turnOwner // by actor
	remotePlaces remotePlaces            // tickets and turns of remote owners

	sequence uint64 // of exchanges
	numbers  uint64 // of joins

	listening    bool
	unsubscribed bool // signals are refused
	closed       bool
	onEmpty      []chan struct{} // closed once all is released
}

// incarnation is one life of the gates actor. Messages carry it, because they
// outlive a restart.
type incarnation struct {
	ctx     context.Context
	cancel  context.CancelFunc
	process string
	send    func(message any) // sends to the actor while the incarnation lasts
}

// waiter is a request for a turn, from the request to its answer; of an actor, to
// the end of the turn.
type waiter struct {
	gate   string
	try    bool
	asked  time.Time
	values context.Context // whose values the turn's context has
	answer chan turnAnswer // to a goroutine; capacity 1
	owner  *turnOwner      // of an actor
	expiry *time.Timer     // of an actor's request with a timeout

	request, place uint64        // of an actor
	ttl            time.Duration // of an actor's turn; 0: as long as the actor lives
	lapse          *time.Timer   // ends the turn at lapses
	lapses         time.Time

	number   uint64
	ticket   gate.Ticket // 0: none yet
	since    gate.Ticket // all tickets from it to ours are of this process; 0: unknown
	turn     *Turn
	placed   bool // it has or had a ticket
	answered bool
	gone     bool // the request was withdrawn
	counted  bool // it counts as waiting in the metrics
}

type turnAnswer struct {
	turn *Turn
	err  error
}

// ByToken extends or releases a turn with a ttl. Its sender does not become the owner of the turn:
// it may end before the answer.
type ByToken struct {
	Extend  *messages.ExtendTurnRequest
	Release *messages.ReleaseTurnRequest // unless Extend is set
}

// Messages to the gates actor.
type (
	acquire     struct{ waiter *waiter }
	withdraw    struct{ waiter *waiter }
	releaseTurn struct {
		turn   *Turn
		answer func(error)
	}
	closeGates struct{ done chan struct{} }
	isWaiting  struct { // asks whether a ticket is waiting, in this process
		gate   string
		ticket gate.Ticket
		answer chan bool // has room for one
	}

	turnOver struct { // its lease has expired by the local clock
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

// Props returns the props of the gates actor of g.
func Props(g *Gates) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return host.LogCrashes(g.cfg.Logger, &gatekeeper{gates: g, cfg: &g.cfg})
	})
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
		k.answerWaiting(m)
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
	case ByToken:
		if m.Extend != nil {
			k.extendTurn(c, m.Extend)
		} else {
			k.releaseOwned(c, m.Release)
		}
	case RightsChanged:
		k.rightsChanged(m)
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
	k.parts, k.queues, k.owners = map[int]*part{}, map[string]*gateQueue{}, map[string][]*turnOwner{}
	k.remotePlaces = newRemotePlaces()
	incarnation := &incarnation{process: k.cfg.Process()}
	//nolint:forbidigo // the context lasts as long as the incarnation, which
	// stop ends
	incarnation.ctx, incarnation.cancel = context.WithCancel(context.Background())
	root, self := k.root, k.self
	incarnation.send = func(message any) {
		if incarnation.ctx.Err() == nil {
			root.Send(self, message)
		}
	}
	k.incarnation = incarnation
}

func (k *gatekeeper) acquire(w *waiter) {
	if k.closed {
		k.refuse(w, ErrClosed)
		return
	}
	k.listen()
	k.numbers++
	w.number = k.numbers
	k.countWaiting(w, true)
	q := k.queue(w.gate)
	q.joins = append(q.joins, w)
	k.pump(q)
	k.startHeartbeat(q.part)
}

// withdraw removes a request that was given up. If its turn was granted
// meanwhile, the turn is released.
func (k *gatekeeper) withdraw(w *waiter) {
	if !w.gone && (!w.answered || w.turn != nil) {
		k.leave(w)
	}
}

func (k *gatekeeper) leave(w *waiter) {
	w.gone = true
	k.countWaiting(w, false)
	if w.turn != nil {
		k.release(releaseTurn{w.turn, nil})
		return
	}
	q := k.queue(w.gate)
	if w.ticket != 0 {
		delete(q.waiting, w.ticket)
		q.returnTicket(ticketReturn{ticket: w.ticket})
	} else { // not sent yet, or in flight: then joined returns the ticket
		q.removeJoin(w)
	}
	k.forgetWaiter(w)
	k.pump(q)
}

// release releases a turn.
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
		if t.ctx.Err() != nil || t.unreported && !time.Now().Before(t.until) { // its timer has fired or is late
			k.lose(t)
		} else {
			k.handOver(q, t)
		}
		k.pump(q)
	}
}

// lose ends a turn that this process no longer has, or may no longer have. It is
// released in case that it still has.
func (k *gatekeeper) lose(t *Turn) {
	q := k.queue(t.Gate)
	t.stop(ErrTurnLost)
	k.measureEnd(t, true)
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
		k.cfg.Logger.Warn("turn lost", "gate", t.Gate, "fence", t.Fence, "owner", principal, "skipped", skipped)
	}
}

// refuse answers a request with an error.
func (k *gatekeeper) refuse(w *waiter, err error) {
	if w.answered {
		return
	}
	w.answered = true
	k.countWaiting(w, false)
	if w.owner != nil {
		k.refuseOwner(w, err)
		return
	}
	w.answer <- turnAnswer{err: err}
}

// requestPoll sends a request for a gate even if nothing joins or is returned.
func (k *gatekeeper) requestPoll(name string) {
	q := k.queue(name)
	q.poll = true
	k.pump(q)
}
