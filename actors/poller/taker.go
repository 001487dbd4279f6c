package poller

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/wakebell/wakebell/messages"
)

// Taker gets leases by calls, where a Target that is an actor costs several
// messages for each. Its methods may be called by many goroutines at once, and
// must not block.
type Taker interface {
	// Take gets a lease, to be answered now or later. It is extended only by
	// Handed.Extend.
	Take(h *Handed)
	// Extended tells that a Handed.Extend was confirmed: Until has moved.
	Extended(h *Handed)
	// Over tells that a lease has ended that was not answered.
	Over(m *messages.LeaseEnded)
}

// Handed is a lease in the hands of a Taker.
type Handed struct {
	*messages.Lease
	answers chan any // has room for one
	lease   *lease
	taker   Taker
}

// Until is when the lease ends by the local clock, unless it is extended. No
// other handler has it before.
func (h *Handed) Until() time.Time { return h.lease.until() }

// Answer is what became of it: a *messages.Ack, Nack, Reject or Release. Only
// the first counts.
func (h *Handed) Answer(answer any) {
	select {
	case h.answers <- answer:
	default:
	}
}

// Extend asks for more time. Once it is confirmed, the Taker is told.
func (h *Handed) Extend() { h.lease.stream.tell(extendNow{lease: h.lease, handed: h}) }

// hand gives the delivery to a Taker and waits for its answer.
func (d *Delivery) hand(ctx context.Context, to Taker, m *messages.Lease) (answer any, err error) {
	h := &Handed{Lease: m, answers: make(chan any, 1), lease: d.lease, taker: to}
	to.Take(h)
	select {
	case answer = <-h.answers:
		return answer, nil
	case <-ctx.Done():
		to.Over(endOf(m, context.Cause(ctx)))
		return nil, context.Cause(ctx)
	}
}

// endOf tells why a lease has ended.
func endOf(m *messages.Lease, cause error) *messages.LeaseEnded {
	ended := &messages.LeaseEnded{Id: m.GetId(), Delivery: m.GetDelivery()}
	switch {
	case errors.Is(cause, ErrCancelled):
		ended.Why = messages.LeaseEnd_LEASE_END_CANCELLED
	case errors.Is(cause, ErrLeaseTooOld):
		ended.Why = messages.LeaseEnd_LEASE_END_TOO_OLD
	case errors.Is(cause, ErrDraining):
		ended.Why = messages.LeaseEnd_LEASE_END_DRAINING
	}
	return ended
}

// newDelivery is a number that tells deliveries apart; it keeps nobody out.
func newDelivery() uint64 { return rand.Uint64() }
