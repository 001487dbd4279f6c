package poller

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell/messages/exchange"
)

var (
	// ErrSuperseded says that the timer was scheduled again while its handler
	// ran: what the handler settles no longer concerns it.
	ErrSuperseded = errors.New("timer scheduled again while its handler ran")
	// ErrSettled says that the delivery has been settled already.
	ErrSettled = errors.New("delivery is settled already")
)

// Settle settles a delivery while its handler goes on, and returns once the
// source has confirmed it. What the handler returns later does not count.
// Errors: ErrSettled, ErrSuperseded, or why the delivery is no longer the
// handler's; ctx bounds the wait, not the settlement.
func (d *Delivery) Settle(ctx context.Context, o Outcome) error {
	return d.ask(ctx, func(answer chan<- error) any { return settleNow{d.lease, o, answer} })
}

// Extend extends the lease at once, and returns when the source has confirmed
// it. Errors are those of Settle. Leases are extended by themselves; Extend is
// for who must know that the timer is still theirs before a step that hurts
// when done twice.
func (d *Delivery) Extend(ctx context.Context) error {
	return d.ask(ctx, func(answer chan<- error) any { return extendNow{lease: d.lease, answer: answer} })
}

// Messages of a handler's goroutine to its poller. Answers never block: they
// have room for the one error that is sent.
type (
	settleNow struct {
		lease   *lease
		outcome Outcome
		answer  chan<- error
	}
	extendNow struct {
		lease     *lease
		answer    chan<- error // nil: handed is told
		forwarded *ForwardedLease
	}
)

func (d *Delivery) ask(ctx context.Context, message func(chan<- error) any) error {
	answer := make(chan error, 1)
	d.lease.stream.toPoller(message(answer))
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.lease.stream.ctx.Done():
		return ErrStopped
	}
}

func (p *poller) settleNow(m settleNow) {
	l := m.lease
	if err := l.checkHeld(); err != nil {
		m.answer <- err
		return
	}
	l.settled = true
	l.confirmExtension(ErrSettled)
	if !p.settle(l, m.outcome) { // left to its lease
		m.answer <- nil
		return
	}
	last := &l.stream.toSettle[len(l.stream.toSettle)-1]
	last.answer = m.answer
}

func (p *poller) extendNow(m extendNow) {
	l := m.lease
	if err := l.checkHeld(); err != nil {
		if m.answer != nil {
			m.answer <- err
		}
		return
	}
	if m.forwarded != nil {
		l.forwarded = m.forwarded
	} else {
		l.extendWaiters = append(l.extendWaiters, m.answer)
	}
	l.verify, l.stream.extendDue = true, true
}

// standing is nil while the lease is the handler's to settle.
func (l *lease) checkHeld() error {
	switch cause := l.ctx.endedBy(); {
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

// confirmExtension answers those who wait for the lease's extension.
func (l *lease) confirmExtension(err error) {
	for _, answer := range l.extendWaiters {
		answer <- err
	}
	l.extendWaiters = nil
	if l.forwarded != nil && err == nil {
		l.forwarded.sink.Extended(l.forwarded)
	}
	l.forwarded = nil
}

// causeOf is the error for a handler whose word the source refused.
func causeOf(why exchange.Why) error {
	switch why {
	case exchange.Superseded:
		return ErrSuperseded
	case exchange.Cancelled:
		return ErrCancelled
	default:
		return ErrLeaseLost
	}
}
