package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/expiry"
	"github.com/wakebell/wakebell/internal/keeper"
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
// It does not run around batches; see BatchMiddleware.
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

// BatchFunc handles a batch of timers with encoded bodies. The result has the verdicts of
// timers by their ID, as BatchError says; a timer without one is acknowledged.
type BatchFunc func(ctx context.Context, timers []Timer[[]byte]) BatchError

// BatchMiddleware wraps the handling of batches, as Middleware wraps that of single timers:
// it may replace or change bodies, and change the context and the verdicts. It calls next
// once, with some of the timers, or not at all, and gives those that it leaves out a verdict;
// next never returns nil. It runs in the handler's goroutine, so a panic in it is a crash of
// the batch. A timer that cannot be delivered at all, for instance because its payload is
// missing, reaches no middleware.
type BatchMiddleware func(next BatchFunc) BatchFunc

// WithBatch wraps the handler of batches of a topic or queue in middleware; the first is the
// outermost. Config.BatchMiddleware is outside of it.
func WithBatch(mw ...BatchMiddleware) CommonOption {
	return commonOption(func(s *settings) error {
		if slices.ContainsFunc(mw, func(m BatchMiddleware) bool { return m == nil }) {
			return argument.Invalid("WithBatch", "nil middleware")
		}
		s.batchMiddleware = append(s.batchMiddleware, mw...)
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
	if s.on.Payloads == nil {
		return nil
	}
	return []Middleware{func(next HandlerFunc) HandlerFunc {
		return func(ctx context.Context, t Timer[[]byte]) error {
			plain, err := s.decodePayload(ctx, h, &t)
			if err != nil {
				return err
			}
			if err = next(ctx, t); err == nil {
				s.discard(ctx, t, plain)
			}
			return err
		}
	}}
}

// decodingBatch returns fn for batches whose bodies are to be decoded. A body may come from
// a store, so the timers do not wait for each other.
func (s *System) decodingBatch(h Handler, fn batchFunc) batchFunc {
	if s.on.Payloads == nil {
		return fn
	}
	return func(ctx context.Context, timers []Timer[[]byte]) []error {
		errs, plain := make([]error, len(timers)), make([]payload.Decoded, len(timers))
		var tasks sync.WaitGroup
		for i := range timers {
			tasks.Go(func() { plain[i], errs[i] = s.decodePayload(timers[i].Context(), h, &timers[i]) })
		}
		tasks.Wait()
		decoded, at := make([]Timer[[]byte], 0, len(timers)), make([]int, 0, len(timers))
		for i, err := range errs {
			if err == nil {
				decoded, at = append(decoded, timers[i]), append(at, i)
			}
		}
		if len(decoded) == 0 {
			return errs
		}
		for k, err := range fn(ctx, decoded) {
			i := at[k]
			if errs[i] = err; err == nil {
				tasks.Go(func() { s.discard(timers[i].Context(), timers[i], plain[i]) })
			}
		}
		tasks.Wait()
		return errs
	}
}

// aroundBatch returns what wraps the function of a handler of batches; nil: nothing.
func (s *System) aroundBatch(h Handler) func(batchFunc) batchFunc {
	mw := slices.Concat(s.cfg.BatchMiddleware, h.set.batchMiddleware)
	if s.on.Payloads == nil && len(mw) == 0 {
		return nil
	}
	return func(fn batchFunc) batchFunc { return s.decodingBatch(h, wrappedBatch(fn, mw)) }
}

// decodePayload decodes the body of a timer in place.
func (s *System) decodePayload(ctx context.Context, h Handler, t *Timer[[]byte]) (plain payload.Decoded, err error) {
	err = usercode.Called("decoding the payload", func() (err error) {
		plain, err = s.on.Payloads.Decode(ctx, payload.Encoded{
			Kind: h.stored(), Topic: h.topic, ID: t.ID, Headers: t.Headers, Body: t.Body, ContentType: t.ContentType,
		})
		return err
	})
	switch {
	case errors.Is(err, payload.ErrCorrupt):
		return plain, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case err != nil && h.set.queue != nil && h.set.queue.finalErrors:
		return plain, &crash{err} // the message must not be lost before its key is there
	case err != nil:
		return plain, err
	}
	t.Body, t.ContentType, t.Headers, t.frame = plain.Body, plain.ContentType, plain.Headers, false
	return plain, nil
}

// discard settles a handled timer whose body, or that of its last checkpoint, is in the
// store, and then deletes it there. A timer that is not settled may be delivered again, and
// needs it.
func (s *System) discard(ctx context.Context, t Timer[[]byte], plain payload.Decoded) {
	if d, ok := t.delivery.(interface{ polled() *poller.Delivery }); ok {
		if last, found := keeper.Replaced(d.polled()); found {
			plain = last
		}
	}
	s.discardBody(ctx, t.ID, t.Topic, plain, func() error { return t.Settle(ctx, nil) })
}

// discardBody settles a timer whose body is in the store, and then deletes it there.
func (s *System) discardBody(ctx context.Context, id, topic string, plain payload.Decoded, settle func() error) {
	if !plain.InStore || settle() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if err := usercode.Called("deleting the body", func() error { return plain.Discard(ctx) }); err != nil {
		s.on.Logger.WarnContext(ctx, "a handled body was not deleted from its store", "topic", topic, "id", id, "err", err)
	}
}

// served is a Handler of a System, as the poller of one of its physical topics uses it.
type served struct {
	*Handler
	log    *slog.Logger
	expiry *expiry.Topic // nil: of a queue
}

// chain wraps a handler's innermost HandlerFunc in middleware for the pollers. The span
// of a delivery is outside of it.
func chain(h served, mw []Middleware, tracer *tracing.Consumer) poller.Handle {
	fn, read := wrapped(h.fn, mw), h.reader()
	return func(ctx context.Context, d *poller.Delivery) poller.Outcome {
		env, err := read(d)
		if err != nil {
			return poller.Undeliverable(err)
		}
		own := delivered{Delivery: d, part: keeper.PartOf(d, env.Headers), lapses: h.set.retryOnExpiry}
		if o, ended := h.expiry.Ended(ctx, d, env, own.ends); ended {
			return o
		}
		keeper.Began(d, env.Headers)
		body := env.Body
		if len(mw) > 0 { // middleware may change the body in place
			body = slices.Clone(body)
		}
		t := Timer[[]byte]{Body: body, Meta: meta(d, env)}
		t.delivery, t.frame = own, h.set.queue != nil
		if tracer.On() {
			return h.finished(ctx, own, h.traced(ctx, tracer, t, own, fn))
		}
		return h.finished(ctx, own, fn(ctx, t))
	}
}

// finished is verdict after what the delivery has kept is written, and the joins of a part
// know how it has ended.
func (h served) finished(ctx context.Context, d delivered, err error) poller.Outcome {
	outcome := h.verdict(d.ID, err)
	if d.Kept() != nil || d.Claims > 1 {
		keeper.Finish(ctx, d.Delivery, outcome)
	}
	switch failed := d.ends(outcome); {
	case failed == nil:
		return outcome
	case d.Context().Err() != nil: // the lease is lost or may be returned, which is no crash
		return poller.Released()
	default:
		return poller.Crashed(failed)
	}
}

// verdict returns the outcome for the error of a handler, and logs the stack of a panic that
// became one.
func (h served) verdict(id string, err error) poller.Outcome {
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
		CorrelationID: cmp.Or(env.CorrelationID, d.ID),
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
