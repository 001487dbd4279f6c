package wakebell

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// HandlerFunc handles a timer with an encoded body. Its error is the verdict, as
// in Handle.
type HandlerFunc func(ctx context.Context, t Timer[[]byte]) error

// Middleware wraps the handling of timers: it runs code before and after next,
// changes the context or the verdict, or does not call next at all. It runs in
// the handler's goroutine, so a panic in it is a crash of the handler.
//
// It may replace t.Body and t.ContentType, or change t.Body in place, for instance
// to decrypt or decompress it. The next middleware and the handler receive the
// result; with Forward, the lease does. t.Raw is not affected, nor are retries and
// dead letters: the next delivery starts with the original body.
//
// A codec or an UnmarshalJSON of yours that panics fails the delivery, with the text of the
// panic.
//
// Around a batch it runs for each timer, in a goroutine of its own; see HandleBatch.
type Middleware func(next HandlerFunc) HandlerFunc

// With wraps the handler of a topic or queue in middleware; the first is the
// outermost. Config.Middleware is outside of it.
func With(mw ...Middleware) CommonOption {
	return commonOption(func(s *settings) error {
		if slices.ContainsFunc(mw, func(m Middleware) bool { return m == nil }) {
			return argument.Invalid("With", "nil middleware")
		}
		s.middleware = append(s.middleware, mw...)
		return nil
	})
}

// ErrUnreadable is wrapped by the error of Topic.Get, and by the error that a
// middleware receives from next, if the body cannot be decoded into the type of
// the topic. The timer of the middleware is dead-lettered, also with
// DiscardRejected.
var ErrUnreadable = codec.ErrUnreadable

// typed returns the innermost HandlerFunc of a topic, which decodes the body.
func typed[T any](c codec.Codec[T], fn func(context.Context, Timer[T]) error) HandlerFunc {
	return func(ctx context.Context, raw Timer[[]byte]) error {
		body, err := decode(c, raw)
		if err != nil {
			return err
		}
		return fn(ctx, Timer[T]{Body: body, Meta: raw.Meta})
	}
}

// decode decodes the body of a delivered timer.
func decode[T any](c codec.Codec[T], raw Timer[[]byte]) (body T, err error) {
	framed := raw.Body
	if !raw.frame {
		framed = nil
	}
	if payload.Marked(raw.Headers, framed) { // retried: the keys may be deployed later than the first body
		return body, notOpened(raw.Headers, raw.Body)
	}
	defer func() {
		if reason := recover(); reason != nil {
			err = usercode.NewPanic("decoding the body", reason, debug.Stack())
		}
	}()
	body, err = c.Decode(raw.Body, raw.ContentType)
	if err != nil {
		return body, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return body, nil
}

// discardTimeout bounds the deletion of a body from the store of a payload.ClaimCheck.
const discardTimeout = 10 * time.Second

// stored returns what bodies the handler receives: timers, or messages of a queue.
func (h Handler) stored() wakebelltype.OutgoingKind {
	if h.set.queue != nil {
		return wakebelltype.OutgoingMessage
	}
	return wakebelltype.OutgoingTimer
}

// decoding returns the middleware that decodes bodies for a handler, outside of all
// others; nil: none.
func (s *System) decoding(h Handler) []Middleware {
	chain := s.on.Payloads
	if chain == nil {
		return nil
	}
	return []Middleware{func(next HandlerFunc) HandlerFunc {
		return func(ctx context.Context, t Timer[[]byte]) error {
			var plain payload.Decoded
			err := usercode.Called("decoding the payload", func() (err error) {
				plain, err = chain.Decode(ctx, payload.Encoded{
					Kind: h.stored(), Topic: h.topic, ID: t.ID, Headers: t.Headers, Body: t.Body, ContentType: t.ContentType,
				})
				return err
			})
			switch {
			case errors.Is(err, payload.ErrCorrupt):
				return fmt.Errorf("%w: %w", ErrUnreadable, err)
			case err != nil && h.set.queue != nil && h.set.queue.finalErrors:
				return &crash{err} // the message must not be lost before its key is there
			case err != nil:
				return err
			}
			t.Body, t.ContentType, t.Headers, t.frame = plain.Body, plain.ContentType, plain.Headers, false
			err = next(ctx, t)
			if err == nil && plain.InStore {
				s.discard(ctx, t, plain)
			}
			return err
		}
	}}
}

// discard settles a handled timer, and then deletes its body from the store. A timer that
// is not settled may be delivered again, and needs it.
func (s *System) discard(ctx context.Context, t Timer[[]byte], plain payload.Decoded) {
	if t.Settle(ctx, nil) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if err := usercode.Called("deleting the body", func() error { return plain.Discard(ctx) }); err != nil {
		s.on.Logger.WarnContext(ctx, "a handled body was not deleted from its store", "topic", t.Topic, "id", t.ID, "err", err)
	}
}

// chain wraps a handler's innermost HandlerFunc in middleware for the pollers. The span
// of a delivery is outside of it.
func chain(h Handler, mw []Middleware, tracer *tracing.Consumer) poller.Handle {
	fn, read := wrapped(h.fn, mw), h.reader()
	return func(ctx context.Context, d *poller.Delivery) poller.Outcome {
		env, err := read(d)
		if err != nil {
			return poller.Undeliverable(err)
		}
		body := env.Body
		if len(mw) > 0 { // middleware may change the body in place
			body = slices.Clone(body)
		}
		t := Timer[[]byte]{Body: body, Meta: meta(d, env)}
		t.delivery, t.frame = delivered{Delivery: d}, h.set.queue != nil
		if tracer.On() {
			return h.verdict(d.ID, h.traced(ctx, tracer, t, d, fn))
		}
		return h.verdict(d.ID, fn(ctx, t))
	}
}

// verdict returns the outcome for the error of a handler, and logs the stack of a panic that
// became one.
func (h Handler) verdict(id string, err error) poller.Outcome {
	if err == nil {
		return poller.Succeeded()
	}
	if p, ok := errors.AsType[*usercode.Panic](usercode.Checked(err)); ok {
		h.log.Error("user code panicked; its timer fails", "topic", h.topic, "id", id, "panic", p.Error(), "stack", string(p.Stack))
	}
	return verdict(err)
}

// wrapped returns fn in middleware.
func wrapped(fn HandlerFunc, mw []Middleware) HandlerFunc {
	for _, wrap := range slices.Backward(mw) {
		fn = wrap(fn)
	}
	return fn
}

// reader returns what decodes the payloads of the handler.
func (h Handler) reader() func(*poller.Delivery) (envelope.Envelope, error) {
	if h.read != nil {
		return h.read
	}
	return func(d *poller.Delivery) (envelope.Envelope, error) { return envelope.Decode(d.Payload) }
}

func meta(d *poller.Delivery, env envelope.Envelope) Meta {
	return Meta{
		ID:            d.ID,
		Topic:         d.Topic,
		Activation:    d.Activation,
		Delivered:     d.Claimed,
		Attempt:       d.Claims,
		Failures:      d.Failures,
		CorrelationID: env.CorrelationOr(d.ID),
		ContentType:   env.ContentType,
		ReplyTo:       env.ReplyTo,
		Headers:       env.Headers,
		Raw:           env.Body,
	}
}

// Group returns copies of handlers whose topics and queues have prefix before
// their names, wrapped in middleware, as a router of faststream-redis-timers does.
// Clients use Topic.Under to schedule and Queue.Under to publish.
func Group(prefix string, handlers []Handler, mw ...Middleware) []Handler {
	grouped := slices.Clone(handlers)
	for i := range grouped {
		h := &grouped[i]
		h.topic = prefix + h.topic
		if h.set.queue != nil {
			named := *h.set.queue
			named.name.Name = h.topic
			h.set.queue = &named
		}
		h.set.middleware = slices.Concat(mw, h.set.middleware)
	}
	return grouped
}
