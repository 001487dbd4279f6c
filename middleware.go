package wakebell

import (
	"context"
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
)

// HandlerFunc handles a timer whose body is still bytes. What it returns is
// the verdict, as in Handle.
type HandlerFunc func(ctx context.Context, t Timer[[]byte]) error

// Middleware wraps the handling of timers: it runs code before and after next,
// changes the context or the verdict, or does not call next at all. It runs in
// the handler's goroutine, so a panic in it is a crash of the handler.
//
// It may replace t.Body, or change it in place, and t.ContentType with it: to
// decrypt or to unpack, say. What is inside of it reads what it left there; with
// Forward that is what the lease carries. t.Raw stays what travelled, and so do
// retries and dead letters: the next delivery begins with the original body.
type Middleware func(next HandlerFunc) HandlerFunc

// With wraps the handling of a topic or queue in middleware; the first is the outermost.
// That of Config.Middleware is outside of it.
func With(mw ...Middleware) CommonOption {
	return commonOption(func(s *settings) error {
		if slices.ContainsFunc(mw, func(m Middleware) bool { return m == nil }) {
			return invalid("With", "nil middleware")
		}
		s.middleware = append(s.middleware, mw...)
		return nil
	})
}

// ErrUnreadable is wrapped by what next returns for a body that is not of the
// topic's type: the timer becomes a dead letter, whatever the reject policy.
var ErrUnreadable = codec.ErrUnreadable

// typed is the innermost HandlerFunc of a topic: it reads the body as a T.
func typed[T any](c codec.Codec[T], fn func(context.Context, Timer[T]) error) HandlerFunc {
	return func(ctx context.Context, raw Timer[[]byte]) error {
		body, err := c.Decode(raw.Body, raw.ContentType)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		return fn(ctx, Timer[T]{Body: body, Meta: raw.Meta})
	}
}

// chain makes what the actors call of a handler's innermost HandlerFunc and the
// middleware around it.
func chain(h Handler, mw []Middleware) poller.Handle {
	fn, read := h.fn, h.read
	if read == nil {
		read = envelope.Decode
	}
	for _, wrap := range slices.Backward(mw) {
		fn = wrap(fn)
	}
	return func(ctx context.Context, d *poller.Delivery) poller.Outcome {
		env, err := read(d.Payload)
		if err != nil {
			return poller.Undeliverable(err)
		}
		body := env.Body
		if len(mw) > 0 { // which may change it in place
			body = slices.Clone(body)
		}
		return verdict(fn(ctx, Timer[[]byte]{Body: body, Meta: meta(d, env)}))
	}
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
		delivery:      delivered{d},
	}
}

// Group puts prefix before the topics of handlers, as a router of
// faststream-redis-timers does, and middleware around them all. Those who
// schedule use Topic.Under, those who publish Queue.Under.
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
