package wakebell

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/queue"
)

// Message is what a handler of a queue gets. Its Activation is when it was
// published, as its id tells (Python's ids do not: then it is when it was
// claimed), Failures the deliveries before, for whatever reason.
type Message[T any] = Timer[T]

// HandleQueue has fn called for every message of a queue, as Handle does for the
// timers of a topic.
func HandleQueue[T any](q queue.Queue[T], fn func(context.Context, Message[T]) error, opts ...QueueHandlerOption) Handler {
	body := codec.For[T]()
	h := queueHandler(q, typed(body, fn), opts)
	if fn == nil {
		h.err = errors.Join(h.err, invalid("handler", "nil"))
	}
	return h
}

// ForwardQueue has the messages of a queue delivered to an actor, as Forward does
// with the timers of a topic. Queue.Read reads the body.
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
