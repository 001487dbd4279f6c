package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	actorgateway "github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/keeper"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages"
)

// Target is an actor that handles the timers of a topic or the
// messages of a queue.
type Target struct{ target *poller.Target }

// ToActor returns a Target that forwards to a running actor, up to MaxConcurrent
// leases at once. If the actor stops, its timers are delivered again when their
// leases expire.
func ToActor(pid *actor.PID) Target { return Target{&poller.Target{PID: pid}} }

// ToEachActor returns a Target that spawns up to MaxConcurrent actors from props
// and forwards one lease at a time to each. An actor that fails is restarted;
// its timer is delivered again when its lease expires.
func ToEachActor(props *actor.Props) Target { return Target{&poller.Target{Props: props}} }

// ToSink returns a Target that passes leases and their ends to s by function calls, for
// package remote. Only this module can call it.
func ToSink(s hosted.Sink) Target { return Target{&poller.Target{Sink: s.LeaseSink}} }

// NotifyEnd returns a copy of the Target that also receives a *messages.LeaseEnded
// when a lease ends before it was answered, for instance because the timer was
// cancelled. If its reason is LEASE_END_DRAINING, an answer still counts for half a second.
func (t Target) NotifyEnd() Target {
	if t.target == nil {
		return t
	}
	notified := *t.target
	notified.NotifyEnd = true
	return Target{&notified}
}

// Forward returns a Handler that delivers the timers of a topic to an actor of
// the caller. The actor receives a *messages.Lease and answers its sender with
// lease.Ack(), Nack(err), NackIn(d, err), Reject(err) or Release(), at once or
// later. Without an answer within LeaseTTL, the timer is delivered again;
// lease.Extend() extends the lease by LeaseTTL. Topic.Read decodes the body.
//
// When the DrainTimeout of the System has passed, the actor has half a second to answer;
// NotifyEnd tells it so. A lease without an answer is not released, because the actor may be
// at work: the timer is delivered again when it expires.
//
// With BatchSize, the actor receives a *messages.LeaseBatch instead, with up to
// BatchSize leases. It answers each of them, or the rest of the batch at once with
// batch.Ack() and so on. The verdicts are written when the last lease has its answer.
//
// lease.AckWith(result) gives the timer a result, see HandleResult. lease.Checkpoint(body, …)
// and lease.Progress(fraction, note), as requests to the sender of the lease, do what
// Timer.Checkpoint and Timer.Progress do: the answer is a *messages.KeepResponse, or a
// *messages.Error, for AnswerError. A result and a checkpoint are encoded with Payloads.
func Forward[T any](topic Topic[T], to Target, opts ...HandlerOption) Handler {
	return to.handler(newHandler(topic.name, forward, opts))
}

// handler returns h with the Target.
func (t Target) handler(h Handler) Handler {
	if t.target == nil || (t.target.PID == nil && t.target.Props == nil && t.target.Sink == nil) {
		h.err = errors.Join(h.err, argument.Invalid("Forward", "no actor; use ToActor or ToEachActor"))
		return h
	}
	h.set.target = t.target
	switch {
	case h.set.batch.Size == 0:
	case t.target.Sink != nil:
		h.err = errors.Join(h.err, argument.Invalid("BatchSize", "remote subscribers receive single leases"))
	default:
		h.batch = forwardBatch
	}
	return h
}

// Read decodes the body of a forwarded timer. The error wraps ErrUnreadable.
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
	l := lease(t, d.LeaseTTL)
	l.Trace = d.span.trace(ctx)
	answer, err := d.Forward(ctx, l, d.keeping(t))
	if err != nil {
		return outcome(t, err)
	}
	return outcome(t, answer)
}

// outcome converts the answer of an actor, or the error of waiting for it, into the
// error of a handler.
func outcome(t Timer[[]byte], answer any) error {
	switch a := answer.(type) {
	case error:
		if errors.Is(a, poller.ErrTargetGone) {
			return &crash{a}
		}
		return a
	case *messages.Release:
		return errReleased
	case *messages.Ack:
		if a.GetResult() == nil {
			return nil
		}
		k, err := keptBy(t)
		if err != nil {
			return nil //nolint:nilerr // a queue keeps no results: the message was handled
		}
		return givesResult(keptResult(k, t, a))
	case *messages.Nack:
		return nack(a)
	case *messages.Reject:
		return Reject(errors.New(a.GetReason()))
	default:
		return fmt.Errorf("unexpected answer %T", answer)
	}
}

// errReleased is the verdict that returns a timer as if it had not been delivered.
var errReleased = errors.New("released")

func nack(a *messages.Nack) error {
	switch {
	case a.GetSnooze() && a.GetReason() == "":
		return Snooze(a.GetDelay().AsDuration())
	case a.GetSnooze():
		return fmt.Errorf("%s: %w", a.GetReason(), Snooze(a.GetDelay().AsDuration()))
	case a.GetDelay() == nil:
		return errors.New(a.GetReason())
	case a.GetReason() == "":
		return RetryIn(a.GetDelay().AsDuration())
	default:
		return fmt.Errorf("%s: %w", a.GetReason(), RetryIn(a.GetDelay().AsDuration()))
	}
}

// crash is an error that leaves the timer to its lease.
type crash struct{ error }

func (c *crash) Unwrap() error { return c.error }

// lease returns the message about a timer.
func lease(t Timer[[]byte], ttl time.Duration) *messages.Lease {
	m := &messages.Lease{
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
	repair(m)
	return m
}

// repair replaces invalid UTF-8 in the texts of a lease, as other programs may have written: the
// message of another process would end the link.
func repair(m *messages.Lease) {
	for _, s := range []*string{&m.Id, &m.ContentType, &m.CorrelationId, &m.ReplyTo} {
		if !utf8.ValidString(*s) {
			*s = text.Valid(*s)
		}
	}
	for k, v := range m.GetHeaders() {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			delete(m.GetHeaders(), k)
			m.Headers[text.Valid(k)] = text.Valid(v)
		}
	}
}

// keeping returns what carries out the KeepRequests about a forwarded timer.
func (d delivered) keeping(t Timer[[]byte]) poller.Keep {
	return func(m *messages.KeepRequest) messages.Answer {
		_, timeout, fault := actorgateway.Check(m)
		if fault == nil {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			err := usercode.Called("encoding what is kept", func() error { return keep(ctx, t, m) })
			if err == nil {
				return &messages.KeepResponse{Request: m.GetRequest()}
			}
			fault = convert.ErrorMessage(err)
		}
		fault.Request = m.GetRequest()
		return fault
	}
}

// keep stores what a KeepRequest has.
func keep(ctx context.Context, t Timer[[]byte], m *messages.KeepRequest) error {
	if p := m.GetProgress(); p != nil {
		return t.Progress(ctx, p.GetFraction(), p.GetNote())
	}
	of := m.GetCheckpoint()
	if of == nil {
		return argument.Invalid("what", "nothing to keep")
	}
	k, err := keptBy(t)
	if err != nil {
		return err
	}
	env := envelope.Envelope{
		Body: of.GetBody(), ContentType: of.GetContentType(), CorrelationID: t.CorrelationID, ReplyTo: t.ReplyTo,
		Headers: t.Headers.with(of.GetHeaders()),
	}
	if m.GetEncoded() {
		return k.Replace(ctx, env)
	}
	return k.Checkpoint(ctx, env)
}

// keptResult stores the result in an answer.
func keptResult(k *keeper.Delivery, t Timer[[]byte], a *messages.Ack) error {
	of := a.GetResult()
	env := envelope.Envelope{
		Body: of.GetBody(), ContentType: of.GetContentType(), CorrelationID: t.CorrelationID, Headers: Headers(nil).with(of.GetHeaders()),
	}
	if a.GetEncoded() {
		return k.KeepResult(t.Context(), env)
	}
	return k.Result(t.Context(), env)
}

func keptBy(t Timer[[]byte]) (*keeper.Delivery, error) {
	d, ok := t.delivery.(interface{ polled() *poller.Delivery })
	if !ok {
		return nil, errNoDelivery
	}
	return keeper.Of(d.polled())
}
