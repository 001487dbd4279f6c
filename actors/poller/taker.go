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
type LeaseSink interface {
	// Take gets a lease, to be answered now or later. It is extended only by
	// Handed.Extend.
	Take(h *ForwardedLease)
	// Extended tells that a Handed.Extend was confirmed: Until has moved.
	Extended(h *ForwardedLease)
	// Over tells that a lease has ended that was not answered.
	Over(m *messages.LeaseEnded)
}

// Handed is a lease in the hands of a Taker.
type ForwardedLease struct {
	*messages.Lease
	answers chan any // has room for one
	lease   *lease
	sink    LeaseSink
}

// Until is when the lease ends by the local clock, unless it is extended. No
// other handler has it before.
func (h *ForwardedLease) Until() time.Time { return h.lease.localDeadline() }

// Answer is what became of it: a *messages.Ack, Nack, Reject or Release. Only
// the first counts.
func (h *ForwardedLease) Answer(answer any) {
	select {
	case h.answers <- answer:
	default:
	}
}

// Extend asks for more time. Once it is confirmed, the Taker is told.
func (h *ForwardedLease) Extend() { h.lease.stream.toPoller(extendNow{lease: h.lease, forwarded: h}) }

// hand gives the delivery to a Taker and waits for its answer.
func (d *Delivery) forwardToSink(ctx context.Context, to LeaseSink, m *messages.Lease) (answer any, err error) {
	h := &ForwardedLease{Lease: m, answers: make(chan any, 1), lease: d.lease, sink: to}
	to.Take(h)
	select {
	case answer = <-h.answers:
		return answer, nil
	case <-ctx.Done():
		to.Over(leaseEndedMessage(m, context.Cause(ctx)))
		return nil, context.Cause(ctx)
	}
}

// endOf tells why a lease has ended.
func leaseEndedMessage(m *messages.Lease, cause error) *messages.LeaseEnded {
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
func newDeliveryNumber() uint64 { return rand.Uint64() } //nolint:gosec // as said
