package poller

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages"
)

// Target gets the leases of a topic: a user's actor, by its PID, or a child of
// its own for every handler, made from Props; or a Taker.
type Target struct {
	PID       *actor.PID
	Props     *actor.Props
	NotifyEnd bool // it gets *messages.LeaseEnded when a lease ends before its answer

	Sink LeaseSink // instead of an actor
}

// ErrTargetGone says that the actor a lease was forwarded to has failed or
// ended without an answer.
var ErrTargetGone = errors.New("the actor that had the lease failed or ended")

// Forward gives the delivery to the topic's target and waits for its answer:
// *messages.Ack, Nack or Reject. Errors: ErrTargetGone, or the cause of ctx,
// which ends with the lease. Such a lease is extended only when the target asks
// for it.
func (d *Delivery) Forward(ctx context.Context, m *messages.Lease) (answer any, err error) {
	m.Delivery = newDeliveryNumber()
	w := d.lease.worker.Load()
	if w.sink != nil {
		return d.forwardToSink(ctx, w.sink, m)
	}
	answers := make(chan any, 1)
	w.toHandler(forwarding{lease: d.lease, message: m, answers: answers})
	select {
	case answer = <-answers:
		if gone, ok := answer.(error); ok {
			return nil, gone
		}
		return answer, nil
	case <-ctx.Done():
		w.toHandler(leaseEnded{m.GetDelivery(), context.Cause(ctx)})
		return nil, context.Cause(ctx)
	}
}

// leaseOver says that nobody waits for an answer any more, and why.
type leaseEnded struct {
	delivery uint64
	cause    error
}

// forwarding is a lease that a worker wants to have forwarded, and then the
// one whose answer its handler awaits.
type forwarding struct {
	lease   *lease
	message *messages.Lease
	answers chan<- any // has room for one; only the first counts
}

// targetGone follows a Terminated through the mailbox, because that overtakes
// what the target said before it ended.
type targetGone struct{ delivery uint64 }

// forward sends a lease to the target; one that was awaited is over.
func (h *handler) forward(c actor.Context, f forwarding) {
	h.awaited = &f
	if h.target == nil {
		if h.topic.Target.PID != nil {
			h.target = h.topic.Target.PID
			c.Watch(h.target)
		} else {
			pid, err := c.SpawnNamed(h.topic.Target.Props, "target")
			if err != nil {
				h.answer(f.message.GetDelivery(), err)
				return
			}
			h.target = pid
		}
	}
	c.Request(h.target, f.message)
}

// answer passes on the first answer to the lease that is awaited, and drops
// those to others.
func (h *handler) answer(delivery uint64, answer any) {
	if h.awaited == nil || h.awaited.message.GetDelivery() != delivery {
		return
	}
	h.awaited.answers <- answer
	h.awaited = nil
}

// over tells a target that asked for it that its lease has ended.
func (h *handler) leaseEnded(c actor.Context, m leaseEnded) {
	if h.awaited == nil || h.awaited.message.GetDelivery() != m.delivery {
		return
	}
	if h.topic.Target.NotifyEnd && h.target != nil {
		c.Send(h.target, leaseEndedMessage(h.awaited.message, m.cause))
	}
	h.awaited = nil
}

// extend passes on the target's wish for more time.
func (h *handler) extend(delivery uint64) {
	if h.awaited != nil && h.awaited.message.GetDelivery() == delivery {
		l := h.awaited.lease
		l.stream.toPoller(extendNow{lease: l, answer: make(chan error, 1)})
	}
}

func (h *handler) terminated(c actor.Context, who *actor.PID) {
	if !who.Equal(h.target) {
		return
	}
	h.target = nil // the next lease watches or spawns it anew
	if h.awaited != nil {
		c.Send(c.Self(), targetGone{h.awaited.message.GetDelivery()})
	}
}

// HandleFailure supervises the target that the handler spawned: its lease is
// left to its end, and it is restarted as a handler is.
func (h *handler) HandleFailure(system *actor.ActorSystem, s actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, message any) {
	if h.awaited != nil {
		h.answer(h.awaited.message.GetDelivery(), ErrTargetGone)
	}
	host.RestartHandler.WithRandom(h.topic.random).HandleFailure(system, s, child, stats, reason, message)
}

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
		ended.Reason = messages.LeaseEnd_LEASE_END_CANCELLED
	case errors.Is(cause, ErrLeaseTooOld):
		ended.Reason = messages.LeaseEnd_LEASE_END_TOO_OLD
	case errors.Is(cause, ErrDraining):
		ended.Reason = messages.LeaseEnd_LEASE_END_DRAINING
	}
	return ended
}

// newDelivery is a number that tells deliveries apart; it keeps nobody out.
func newDeliveryNumber() uint64 { return rand.Uint64() } //nolint:gosec // as said
