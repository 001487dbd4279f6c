package poller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages"
)

// Target receives the leases of a topic: the user's actor PID, or a child of
// every handler made from Props, or a LeaseSink.
type Target struct {
	PID   *actor.PID
	Props *actor.Props
	// NotifyEnd: the actor receives *messages.LeaseEnded when a lease ends before its answer. One
	// that a drain ends may still be answered for a short time, and is left to expire otherwise.
	NotifyEnd bool

	Sink LeaseSink // instead of an actor
}

// ErrTargetGone says that the actor with the lease failed or ended without an
// answer.
var ErrTargetGone = errors.New("the actor with the lease failed or ended")

// Keep carries out a KeepRequest of a target, and returns the response or an Error. It waits
// for Redis.
type Keep func(*messages.KeepRequest) messages.Answer

// NotHeld is the answer to a KeepRequest about a lease that its sender does not hold.
func NotHeld(m *messages.KeepRequest) *messages.Error {
	fault := messages.Failure(messages.Code_CODE_LEASE_LOST, ErrLeaseLost.Error())
	fault.Request = m.GetRequest()
	return fault
}

// Forward sends the delivery to the topic's target and waits for its answer:
// *messages.Ack, Nack or Reject. Errors: ErrTargetGone, or the cause of ctx,
// which ends with the lease. If that is ErrDraining, the target has drainAnswer more, and
// the error is ErrTargetGone. The lease is extended only at the target's request.
func (d *Delivery) Forward(ctx context.Context, m *messages.Lease, keep Keep) (answer any, err error) {
	m.Delivery = newDeliveryNumber()
	w := d.lease.worker.Load()
	if w.sink != nil {
		return d.forwardToSink(ctx, w.sink, m, keep)
	}
	answers := make(chan any, 1) // capacity 1; only the first answer counts
	w.toHandler(forwarding{lease: d.lease, message: m, keep: keep, answers: answers})
	select {
	case answer = <-answers:
		if gone, ok := answer.(error); ok {
			return nil, gone
		}
		return answer, nil
	case <-ctx.Done():
		w.toHandler(leaseEnded{m.GetDelivery(), context.Cause(ctx)})
	}
	if answer, err = lastAnswer(ctx, w.queue, answers); errors.Is(err, errUnheard) {
		w.toHandler(leaseEnded{m.GetDelivery(), err})
	}
	return answer, err
}

// lastAnswer waits for the answer to a lease that has ended, if a drain has ended it.
func lastAnswer(ctx context.Context, q *runQueue, answers <-chan any) (answer any, err error) {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrDraining) {
		return nil, cause
	}
	select {
	case answer = <-answers:
		if gone, ok := answer.(error); ok {
			return nil, gone
		}
		return answer, nil
	case <-time.After(drainAnswer):
		return nil, errUnheard
	case <-q.ctx.Done():
		return nil, ErrStopped
	}
}

// leaseEnded tells a handler that a lease has ended. Its worker no longer waits for the answer,
// unless the cause is ErrDraining.
type leaseEnded struct {
	delivery uint64
	cause    error
}

// forwarding asks a handler to forward a lease; the handler keeps it until the
// answer.
type forwarding struct {
	lease   *lease
	message *messages.Lease
	keep    Keep
	answers chan<- any // has room for one; only the first counts
}

// targetGone follows a Terminated through the mailbox, because a Terminated
// overtakes what the target sent before it ended.
type targetGone struct{ delivery uint64 }

// forward sends a lease to the target; an earlier lease is no longer awaited.
func (h *handler) forward(c actor.Context, f forwarding) {
	h.awaited = &f
	if err := h.findTarget(c); err != nil {
		h.answer(f.message.GetDelivery(), err)
		return
	}
	c.Request(h.target, f.message)
}

// findTarget watches or spawns the target, unless that was done before.
func (h *handler) findTarget(c actor.Context) error {
	switch {
	case h.target != nil:
	case h.topic.Target.PID != nil:
		h.target = h.topic.Target.PID
		c.Watch(h.target)
	default:
		return h.spawnTarget(c)
	}
	return nil
}

// spawnTarget spawns the target of the handler. If its producer panics, that lease fails;
// the next one tries again.
func (h *handler) spawnTarget(c actor.Context) error {
	const name = "target"
	err := usercode.Called("the producer of the target", func() (err error) {
		h.target, err = c.SpawnNamed(h.topic.Target.Props, name)
		return err
	})
	if _, panicked := errors.AsType[*usercode.Panic](err); panicked { // its name is still taken
		c.ActorSystem().ProcessRegistry.Remove(actor.NewPID(c.Self().GetAddress(), c.Self().GetId()+"/"+name))
	}
	if err != nil {
		h.target = nil
	}
	return err
}

// answer passes on the first answer to the awaited lease, and drops answers to
// others.
func (h *handler) answer(delivery uint64, answer any) {
	if h.batch.answer(delivery, answer) {
		if h.batch.left == 0 {
			h.batch = nil
		}
		return
	}
	if h.awaited == nil || h.awaited.message.GetDelivery() != delivery {
		return
	}
	h.awaited.answers <- answer
	h.awaited = nil
}

// leaseEnded notifies a target with NotifyEnd that its lease has ended, once. The answer to one
// that a drain has ended is awaited until errUnheard.
func (h *handler) leaseEnded(c actor.Context, m leaseEnded) {
	l := h.batch.unanswered(m.delivery)
	if h.awaited != nil && h.awaited.message.GetDelivery() == m.delivery {
		l = h.awaited.message
	}
	if l != nil && h.topic.Target.NotifyEnd && h.target != nil && !errors.Is(m.cause, errUnheard) {
		c.Send(h.target, leaseEndedMessage(l, m.cause))
	}
	if !errors.Is(m.cause, ErrDraining) {
		h.answer(m.delivery, m.cause)
	}
}

// extend passes on the target's request for more time.
func (h *handler) extend(delivery uint64) {
	for _, l := range h.batch.leasesOf(delivery) {
		l.extend()
	}
	if h.awaited != nil && h.awaited.message.GetDelivery() == delivery {
		h.awaited.lease.extend()
	}
}

// keep carries out a KeepRequest of the target beside the mailbox.
func (h *handler) keep(c actor.Context, m *messages.KeepRequest) {
	keep := h.batch.keepOf(m.GetDelivery())
	if h.awaited != nil && h.awaited.message.GetDelivery() == m.GetDelivery() {
		keep = h.awaited.keep
	}
	if keep == nil {
		c.Respond(NotHeld(m))
		return
	}
	root, to := c.ActorSystem().Root, c.Sender()
	go func() { // it ends with the lease
		if answer := keep(m); to != nil {
			root.Send(to, answer)
		}
	}()
}

// extend requests more time for a forwarded lease.
func (l *lease) extend() { l.queue.toPoller(extendNow{lease: l, answer: make(chan error, 1)}) }

func (h *handler) terminated(c actor.Context, who *actor.PID) {
	if !who.Equal(h.target) {
		return
	}
	h.target = nil // the next lease watches or spawns it again
	if h.awaited != nil {
		c.Send(c.Self(), targetGone{h.awaited.message.GetDelivery()})
	}
	if h.batch != nil {
		c.Send(c.Self(), targetGone{h.batch.message.GetDelivery()})
	}
}

// HandleFailure supervises the target that the handler spawned: its lease is left
// to expire, and it is restarted like a handler.
func (h *handler) HandleFailure(system *actor.ActorSystem, s actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, message any) {
	if h.awaited != nil {
		h.answer(h.awaited.message.GetDelivery(), ErrTargetGone)
	}
	h.batch.answerAll(ErrTargetGone)
	host.RestartHandler.WithRandom(h.topic.random).HandleFailure(system, s, child, stats, reason, message)
}

// LeaseSink receives leases by method calls, where a Target that is an actor
// costs several messages per lease. Its methods may be called by many goroutines
// at once, and must not block.
type LeaseSink interface {
	// Take receives a lease, to be answered now or later. It is extended only by
	// ForwardedLease.Extend.
	Take(h *ForwardedLease)
	// Extended reports that a ForwardedLease.Extend was confirmed: Until has
	// moved.
	Extended(h *ForwardedLease)
	// Over reports that a lease ended without an answer. One that ended because of a drain may
	// be answered for a short time, and is left to expire otherwise.
	Over(m *messages.LeaseEnded)
}

// ForwardedLease is a lease that a LeaseSink holds.
type ForwardedLease struct {
	*messages.Lease
	Keep    Keep
	answers chan any // has room for one
	lease   *lease
	sink    LeaseSink
}

// Until is when the lease expires by the local clock, unless it is extended. No
// other handler has it before.
func (h *ForwardedLease) Until() time.Time { return h.lease.deadline() }

// Answer settles the lease: with a *messages.Ack, Nack, Reject or Release. Only
// the first answer counts.
func (h *ForwardedLease) Answer(answer any) {
	select {
	case h.answers <- answer:
	default:
	}
}

// Extend requests more time. LeaseSink.Extended reports the confirmation.
func (h *ForwardedLease) Extend() { h.lease.queue.toPoller(extendNow{lease: h.lease, forwarded: h}) }

// forwardToSink passes the delivery to a LeaseSink and waits for its answer.
func (d *Delivery) forwardToSink(ctx context.Context, to LeaseSink, m *messages.Lease, keep Keep) (answer any, err error) {
	h := &ForwardedLease{Lease: m, Keep: keep, answers: make(chan any, 1), lease: d.lease, sink: to}
	to.Take(h)
	select {
	case answer = <-h.answers:
		return answer, nil
	case <-ctx.Done():
		to.Over(leaseEndedMessage(m, context.Cause(ctx)))
	}
	return lastAnswer(ctx, d.lease.queue, h.answers)
}

// drainAnswer is how long a Target has for its answer once a drain has ended its lease: less
// than the poller waits for handlers.
const drainAnswer = leasing.DrainGrace / 2

// errUnheard leaves the lease of a drain to expire: another handler must not get the timer while
// the one of the Target may not have heard that its lease has ended.
var errUnheard = fmt.Errorf("%w: no answer after the drain", ErrTargetGone)

// leaseEndedMessage returns the notification that a lease has ended.
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

// newDeliveryNumber distinguishes deliveries; it is not a secret.
func newDeliveryNumber() uint64 { return rand.Uint64() }
