package wakebell

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/queue"
)

// HandleQueue returns a Handler that calls fn for each message of a queue, as
// Handle does for the timers of a topic. Of a message, Activation is the instant of
// publication, taken from the id; for messages from Python, whose ids do not contain
// it, it is the instant of the claim. Failures counts the earlier deliveries,
// whatever their outcome.
func HandleQueue[T any](q queue.Queue[T], fn func(context.Context, Timer[T]) error, opts ...QueueHandlerOption) Handler {
	body := codec.For[T]()
	h := queueHandler(q, typed(body, fn), opts)
	if fn == nil {
		h.err = errors.Join(h.err, invalid("handler", "nil"))
	}
	return h
}

// ForwardQueue returns a Handler that delivers the messages of a queue to an
// actor, as Forward does with the timers of a topic. Queue.Read decodes the body.
func ForwardQueue[T any](q queue.Queue[T], to Target, opts ...QueueHandlerOption) Handler {
	return to.handler(queueHandler(q, forward, opts))
}

func queueHandler[T any](q queue.Queue[T], fn HandlerFunc, opts []QueueHandlerOption) Handler {
	of, err := q.Settings()
	h := Handler{topic: q.Name(), fn: fn, set: defaultQueueSettings(), err: err}
	h.set.queue.name, h.set.queue.freesKeys = of.Keys, of.FreeKeyOnFailure
	contentType := codec.For[T]().PayloadType()
	h.read = func(payload []byte) (envelope.Envelope, error) {
		return envelope.Envelope{Body: payload, ContentType: contentType}, nil
	}
	h.err = errors.Join(h.err, applyAll(&h.set, opts, QueueHandlerOption.applyQueue))
	return h
}
