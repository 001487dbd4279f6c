package gates

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// Turn is the right to be behind a gate until it is released or lost.
type Turn struct {
	Gate   string
	Fence  uint64
	Waited time.Duration

	ctx   context.Context
	end   context.CancelCauseFunc
	gates *Gates

	mu    sync.Mutex
	until time.Time   // when it ends unless it is extended
	timer *time.Timer // ends ctx then

	// Only the actor touches these.
	incarnation  *incarnation
	owner        *waiter // whom an actor asked for
	state        turnState
	began        time.Time
	confirmed    time.Time   // when what extended it last was sent
	unreported   bool        // the store has yet to be told that it was passed on
	knownTicket  gate.Ticket // if so, the one that the store knew of first
	confirmTimer *time.Timer // for the first confirmation, of one that began with its signal
	answers      []func(error)
}

type turnState uint8

const (
	turnHeld turnState = iota
	turnReleasing
	turnReleased
	turnGone
)

// Context ends with ErrTurnLost when the turn is lost, also when its end is
// only what the local clock says; with context.Canceled once it is released.
func (t *Turn) Context() context.Context { return t.ctx }

// Until is when the turn ends by the local clock unless it is extended, which
// goes on until it is released.
func (t *Turn) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// Release gives the turn back and hands over to the next. Errors: ErrTurnLost
// when it was lost before, or the cause of ctx; then it is given back all the
// same. Once it is released, releasing it again is fine.
func (t *Turn) Release(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case <-t.gates.stopped:
		return ErrTurnLost // which is what a close does to it
	default:
		t.gates.system.Root.Send(t.gates.pid, releaseTurn{t, func(err error) { answer <- err }})
	}
	select {
	case err := <-answer:
		return err
	case <-t.gates.stopped:
		return ErrTurnLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newTurn makes a turn that ends at until unless it is extended.
func (k *gatekeeper) newTurn(w *waiter, ticket gate.Ticket, sent, until time.Time) *Turn {
	t := &Turn{
		Gate: w.gate, Fence: uint64(ticket), Waited: time.Since(w.asked), gates: k.gates,
		until: until, incarnation: k.incarnation, began: time.Now(), confirmed: sent,
	}
	t.ctx, t.end = context.WithCancelCause(context.WithoutCancel(w.values))
	incarnation := k.incarnation
	t.timer = time.AfterFunc(time.Until(until), func() {
		t.end(ErrTurnLost)
		incarnation.send(turnOver{incarnation, t})
	})
	return t
}

// extend moves the end of the turn, if it is later; false: it has ended already.
func (t *Turn) extend(sent, until time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.timer.Stop() {
		return false
	}
	if until.After(t.until) {
		t.until, t.confirmed = until, sent
	}
	t.timer.Reset(time.Until(t.until))
	return true
}

// stop ends the context and the timer; a nil cause is context.Canceled.
func (t *Turn) stop(cause error) {
	t.timer.Stop()
	if t.confirmTimer != nil {
		t.confirmTimer.Stop()
	}
	t.end(cause)
}

// settle tells those who asked for the release what became of it.
func (t *Turn) settle(state turnState, err error) {
	t.state = state
	for _, answer := range t.answers {
		answer(err)
	}
	t.answers = nil
}
