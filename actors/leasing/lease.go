package leasing

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The causes with which the context of a handler ends, and the errors of a handler that
// settles or extends its lease itself.
var (
	// ErrCancelled: the timer was cancelled while its handler ran.
	ErrCancelled = errors.New("timer cancelled while its handler ran")
	// ErrLeaseLost: the lease expired before it could be extended. Another
	// handler may have the timer now; the outcome of this one may be refused.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseTooOld: the handler ran longer than the maximum lease age.
	ErrLeaseTooOld = errors.New("maximum lease age reached")
	// ErrDraining: the drain's deadline passed; the timer is released.
	ErrDraining = errors.New("draining: the deadline passed")
	// ErrSuperseded: the timer was scheduled again while its handler ran: the
	// handler's outcome no longer applies to it.
	ErrSuperseded = errors.New("timer scheduled again while its handler ran")
	// ErrSettled: the delivery is already settled.
	ErrSettled = errors.New("delivery is settled already")
)

// Lease is a claimed timer from its claim to its settlement. Its state is the core's; the
// caller has the rest of it behind Run.
type Lease struct {
	*exchange.Lease
	Run Run

	// Replacement is the payload that the handler has stored in place of that of the claim;
	// nil: none.
	Replacement []byte

	// Late is for how long its timer was due, by the source's clock, when the lease was
	// claimed; or when it was given to the handlers, if it was claimed early.
	Late time.Duration
	// Queued is when the lease was given to the handlers.
	Queued time.Time

	stream *Stream
	slot   int // index in stream.held; -1 once the handler is done

	// deadline is when the lease expires by the local clock: remaining after the claim or the
	// last confirmed extension was sent. Invariant: remaining > 0.
	deadline    time.Time
	remaining   time.Duration
	granted     int64     // when its token was given out, by the source's clock, in ns since 1970
	deliveredAt time.Time // its age counts from here: when it was given to the handlers, or its batch began
	generation  uint64    // of the breaker when it was claimed

	follows   bool // it waits for another of its key, see key_runs.go
	passes    bool // its settlement lets the next of its key begin
	early     bool // it waits for its instant, see early.go
	settled   bool // by its handler, which continues, as settledAs
	settledAs OutcomeKind
	extending bool // an extension is in flight
	verify    bool // extend it at once: a hint says that it may have ended
	awaited   bool // someone waits for its extension

	// refused is why the source no longer accepts this lease; 0: it does.
	refused exchange.RefusalReason

	// ended reports that the context of the handler has ended, for any cause.
	ended bool
}

// Refused reports whether the source no longer accepts the lease.
func (l *Lease) Refused() bool { return l.refused != 0 }

// begun reports whether the handler has begun. The time in which a lease has waited for others of
// its batch is not that of the handler.
func (l *Lease) begun() bool {
	begun, at := l.Run.Begun()
	if at.After(l.deliveredAt) {
		l.deliveredAt = at
	}
	return begun
}

// stored returns the payload that the source has.
func (l *Lease) stored() []byte {
	if l.Replacement != nil {
		return l.Replacement
	}
	return l.Payload
}

// held names the lease to the source.
func (l *Lease) held() exchange.Held {
	return exchange.Held{ID: l.ID, Token: l.Token, Granted: time.Unix(0, l.granted)}
}

// grant gives the lease a token of the reply to a flight.
func (l *Lease) grant(token exchange.Token, f *Flight, r *exchange.Reply) {
	l.Token, l.granted = token, r.Now.Add(r.Remaining-f.Request.LeaseTTL).UnixNano()
}

// confirmed is when the claim or the last confirmed extension was sent.
func (l *Lease) confirmed() time.Time { return l.deadline.Add(-l.remaining) }

// accepted reports whether the lease may still be settled.
func (l *Lease) accepted() bool { return l.refused == 0 && !l.settled }

// end ends the handler's context with cause. Only the first cause counts.
func (l *Lease) end(cause error) {
	if l.ended {
		return
	}
	l.ended = true
	l.Run.End(cause)
	l.confirmExtension(cause)
}

// confirmExtension answers those that wait for the lease's extension.
func (l *Lease) confirmExtension(err error) {
	if l.awaited {
		l.awaited = false
		l.Run.Extended(err)
	}
}

// checkHeld returns nil while the handler may settle the lease.
func (l *Lease) checkHeld() error {
	switch cause := l.Run.Cause(); {
	case l.settled:
		return ErrSettled
	case l.refused != 0:
		return causeOf(l.refused)
	case l.slot < 0 && cause == nil:
		return ErrSettled
	default:
		return cause
	}
}

// Held returns the present token of a lease that its handler may settle, and otherwise the
// reason why it may not. An extension that is in flight may change the token.
func (c *Core) Held(l *Lease) (exchange.Token, error) {
	if err := l.checkHeld(); err != nil {
		return "", err
	}
	return l.Token, nil
}

// Concludes returns the token with which the outcome of a lease would be settled now, and
// otherwise the reason why it would not be. Unlike Held, it has a token for a handler whose
// context has ended, in a drain or because an extension is late: a success of it is settled.
func (c *Core) Concludes(l *Lease) (exchange.Token, error) {
	if l.settled || l.refused != 0 || l.slot < 0 {
		return "", l.checkHeld()
	}
	return l.Token, nil
}

// causeOf returns the error for a handler whose lease the source refused.
func causeOf(why exchange.RefusalReason) error {
	switch why {
	case exchange.Superseded:
		return ErrSuperseded
	case exchange.Cancelled:
		return ErrCancelled
	default:
		return ErrLeaseLost
	}
}

// leaseLost notes that a lease expired while its handler ran.
func (c *Core) leaseLost(l *Lease, now time.Time, why string) {
	c.Counters.Lost.Add(1)
	c.endedBy(l, now, wakebelltype.EventLost, why)
}

// leaseRefused notes that the source no longer accepts a lease.
func (c *Core) leaseRefused(l *Lease, now time.Time, why exchange.RefusalReason) {
	if l.refused != 0 {
		return
	}
	l.refused = why
	l.confirmExtension(causeOf(why))
	switch why {
	case exchange.Superseded: // the handler runs to its end
		c.Counters.Superseded.Add(1)
		c.endedBy(l, now, wakebelltype.EventSuperseded, "")
	case exchange.Cancelled:
		c.Counters.Cancelled.Add(1)
		c.endedBy(l, now, wakebelltype.EventCancelled, "")
		l.end(ErrCancelled)
	case exchange.Lost:
		if !l.ended {
			c.leaseLost(l, now, "the source no longer knows it")
		}
		l.end(ErrLeaseLost)
	}
}

func (c *Core) endedBy(l *Lease, now time.Time, kind wakebelltype.EventKind, why string) {
	c.Effects.Ended(l, End{Kind: kind, Why: why, Took: now.Sub(l.deliveredAt)})
}
