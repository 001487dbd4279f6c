package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// Target is a user's own actor that handles the timers of a topic.
type Target struct{ target *poller.Target }

// ToActor is an actor that runs already. It gets up to MaxConcurrent leases at once.
// It is watched: when it ends, what it had comes back when the leases end.
func ToActor(pid *actor.PID) Target { return Target{&poller.Target{PID: pid}} }

// ToEachActor is an actor spawned from props for each of up to MaxConcurrent
// handlers, one lease at a time each. One that fails is restarted; its timer
// comes back when its lease ends.
func ToEachActor(props *actor.Props) Target { return Target{&poller.Target{Props: props}} }

// ToTaker is one that gets leases by calls, and is told when they end: cheaper
// than an actor for whoever takes very many.
func ToTaker(taker poller.LeaseSink) Target { return Target{&poller.Target{Sink: taker}} }

// Told is the Target, told with a *messages.LeaseEnded when a lease that it has
// not answered ends: the timer was cancelled, say.
func (t Target) Told() Target {
	if t.target == nil {
		return t
	}
	told := *t.target
	told.NotifyEnd = true
	return Target{&told}
}

// Forward has the timers of a topic delivered to an actor of the caller's. It
// gets a *messages.Lease and answers its sender with lease.Ack(), Nack(err),
// NackIn(d, err), Reject(err) or Release(), now or later. Its silence ends with the
// lease: without an answer within LeaseTTL the timer comes back; lease.Extend()
// gives it LeaseTTL more. Topic.Read reads the body.
func Forward[T any](topic Topic[T], to Target, opts ...HandlerOption) Handler {
	return to.handler(newHandler(topic.name, forward, opts))
}

// handler is h with the Target.
func (t Target) handler(h Handler) Handler {
	if t.target == nil || (t.target.PID == nil && t.target.Props == nil && t.target.Sink == nil) {
		h.err = errors.Join(h.err, invalid("Forward", "no actor; use ToActor or ToEachActor"))
		return h
	}
	h.set.target = t.target
	return h
}

// Read reads the body of a forwarded timer.
func (t Topic[T]) Read(l *messages.Lease) (T, error) {
	body, err := t.codec.Decode(l.GetBody(), l.GetContentType())
	if err != nil {
		return body, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return body, nil
}

// forward is the innermost HandlerFunc of a topic with a Target.
func forward(ctx context.Context, t Timer[[]byte]) error {
	d, ok := t.delivery.(delivered)
	if !ok {
		return errNoDelivery
	}
	answer, err := d.Forward(ctx, lease(t, d.LeaseTTL))
	if errors.Is(err, poller.ErrTargetGone) {
		return &crash{err}
	}
	if err != nil {
		return err
	}
	if _, ok := answer.(*messages.Release); ok {
		return errReleased
	}
	return outcome(answer)
}

// outcome returns the error of a handler that an answer stands for.
func outcome(answer any) error {
	switch a := answer.(type) {
	case *messages.Ack:
		return nil
	case *messages.Nack:
		return nack(a)
	case *messages.Reject:
		return Reject(errors.New(a.GetReason()))
	default:
		return fmt.Errorf("unexpected answer %T", answer)
	}
}

// errReleased has a timer given back as if it had not been delivered.
var errReleased = errors.New("released")

func nack(a *messages.Nack) error {
	switch {
	case a.GetDelay() == nil:
		return errors.New(a.GetReason())
	case a.GetReason() == "":
		return RetryIn(a.GetDelay().AsDuration())
	default:
		return fmt.Errorf("%s: %w", a.GetReason(), RetryIn(a.GetDelay().AsDuration()))
	}
}

// crash is an error that is no verdict.
type crash struct{ error }

func (c *crash) Unwrap() error { return c.error }

func lease(t Timer[[]byte], ttl time.Duration) *messages.Lease {
	return &messages.Lease{
		Topic:         t.Topic,
		Id:            t.ID,
		Body:          t.Body,
		ContentType:   t.ContentType,
		CorrelationId: t.CorrelationID,
		ReplyTo:       t.ReplyTo,
		Headers:       t.Headers.Map(),
		Activation:    timestamppb.New(t.Activation),
		Delivered:     timestamppb.New(t.Delivered),
		Attempt:       uint32(min(t.Attempt, 1<<31)),  // bounded
		Failures:      uint32(min(t.Failures, 1<<31)), // bounded
		Ttl:           durationpb.New(ttl),
	}
}
