package gates

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// Turn is the right to pass a gate until it is released or lost.
type Turn struct {
	Gate   string
	Fence  uint64
	Waited time.Duration

	ctx   context.Context
	end   context.CancelCauseFunc
	gates *Gates

	mu    sync.Mutex
	until time.Time   // when the lease expires unless it is extended
	timer *time.Timer // ends ctx then

	// Only the actor accesses these.
	incarnation  *incarnation
	owner        *waiter // the request of an actor; nil: of a goroutine
	state        turnState
	began        time.Time
	confirmed    time.Time   // when the request was sent that extended it last
	unreported   bool        // handed over inside the process; the store does not know yet
	knownTicket  gate.Ticket // if unreported, the ticket that the store considers the turn
	confirmTimer *time.Timer // requests the first confirmation, of a turn that began with a signal
	answers      []func(error)
}

type turnState uint8

const (
	turnHeld turnState = iota
	turnReleasing
	turnReleased
	turnGone
)

// Context ends with ErrTurnLost when the turn is lost, also when only the local
// clock says so; with context.Canceled once it is released.
func (t *Turn) Context() context.Context { return t.ctx }

// Until is when the turn ends by the local clock unless it is extended. It is
// extended automatically until it is released.
func (t *Turn) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// Release releases the turn and passes it to the next ticket. Errors: ErrTurnLost
// if it was lost before, or the cause of ctx; the turn is released in either
// case. Releasing it again is harmless.
func (t *Turn) Release(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case <-t.gates.stopped:
		return ErrTurnLost // Close ends turns so
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

// newTurn returns a turn that ends at until unless it is extended.
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

// settle answers the callers of Release.
func (t *Turn) settle(state turnState, err error) {
	t.state = state
	for _, answer := range t.answers {
		answer(err)
	}
	t.answers = nil
}

// measureEnd records the end of a turn; lost: before its release.
func (k *gatekeeper) measureEnd(t *Turn, lost bool) {
	k.cfg.Metrics.Gate(t.Gate).Ended(k.incarnation.ctx, t, lost)
	k.cfg.held.add(t.Gate, time.Since(t.began))
}

// countWaiting counts a request while it waits.
func (k *gatekeeper) countWaiting(w *waiter, waits bool) {
	if w.counted == waits {
		return
	}
	n := int64(-1)
	if w.counted = waits; waits {
		n = 1
	}
	k.cfg.Metrics.Gate(w.gate).Queued(k.incarnation.ctx, n)
}
