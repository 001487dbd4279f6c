package wakebell

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/redisops/gates"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// HandleQueue returns a Handler that calls fn for each message of a queue, as
// Handle does for the timers of a topic. Of a message, Activation is the instant of
// publication, taken from the id; for messages from Python, whose ids do not contain
// it, it is the instant of the claim. Failures counts all earlier deliveries.
func HandleQueue[T any](q queue.Queue[T], fn func(context.Context, Timer[T]) error, opts ...QueueHandlerOption) Handler {
	body := codec.For[T]()
	h := queueHandler(q, typed(body, fn), opts)
	if h.set.queue.finalErrors {
		h.fn = keepEncoded(h.fn)
	}
	if fn == nil {
		h.err = errors.Join(h.err, argument.Invalid("handler", "nil"))
	}
	return h
}

// HandleQueueBatch returns a Handler that calls fn with up to BatchSize messages of a
// queue at once, as HandleBatch does with the timers of a topic.
func HandleQueueBatch[T any](q queue.Queue[T], fn func(context.Context, []Timer[T]) error, opts ...QueueHandlerOption) Handler {
	h := queueHandler(q, nil, opts).inBatches(typedBatch(codec.For[T](), fn))
	if h.set.queue.finalErrors {
		h.batch = keepEncodedBatch(h.batch)
	}
	if fn == nil {
		h.err = errors.Join(h.err, argument.Invalid("handler", "nil"))
	}
	return h
}

// keepEncoded keeps a message that is encoded, where Payloads is not set, until its lease
// expires: an error would be final.
func keepEncoded(fn HandlerFunc) HandlerFunc {
	return func(ctx context.Context, t Timer[[]byte]) error { return kept(fn(ctx, t)) }
}

// keepEncodedBatch is keepEncoded for batches.
func keepEncodedBatch(fn batchFunc) batchFunc {
	return func(ctx context.Context, timers []Timer[[]byte]) []error {
		errs := fn(ctx, timers)
		for i := range errs {
			errs[i] = kept(errs[i])
		}
		return errs
	}
}

func kept(err error) error {
	if errors.Is(err, payload.ErrUnknownCodec) {
		return &crash{err}
	}
	return err
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
	h.read = func(d *poller.Delivery) (envelope.Envelope, error) {
		return envelope.Envelope{Body: d.Payload, ContentType: contentType, Headers: d.Headers}, nil
	}
	h.err = errors.Join(h.err, applyAll(&h.set, opts, QueueHandlerOption.applyQueue))
	if h.set.queue.atMostOnce && h.set.tuned.MaxInFlight > 0 {
		h.err = errors.Join(h.err, argument.Invalid("MaxInFlight", "a queue with AtMostOnce has no leases that expire"))
	}
	return h
}

// queueHandling are the settings of handlers of queues alone.
type queueHandling struct {
	name              wakebelltype.QueueKeys
	completed, failed int64
	finalErrors       bool
	atMostOnce        bool
	freesKeys         bool
}

// defaultQueueSettings are the defaults of a handler of a queue: the visibility
// timeout and the deliveries of redis-message-queue, an age at which a hung handler
// ends, and a polling interval for messages from Python.
func defaultQueueSettings() settings {
	s := defaultSettings()
	s.queue = &queueHandling{}
	s.tuned.LeaseTTL, s.tuned.MaxLeaseAge = 5*time.Minute, time.Hour
	s.tuned.MaxPollingInterval = time.Second
	s.tuned.MaxAttempts = 10
	return s
}

// KeepCompleted keeps the payloads of the last n handled messages of a queue,
// 0 – 1,000,000; default 0.
func KeepCompleted(n int) QueueHandlerOption {
	return queueOption(func(s *settings) error {
		s.queue.completed = int64(n)
		return within("KeepCompleted", n, 0, 1_000_000)
	})
}

// KeepFailed keeps the payloads of the last n messages of a queue that failed
// under ErrorsAreFinal or AtMostOnce, 0 – 1,000,000; default 0.
func KeepFailed(n int) QueueHandlerOption {
	return queueOption(func(s *settings) error {
		s.queue.failed = int64(n)
		return within("KeepFailed", n, 0, 1_000_000)
	})
}

// ErrorsAreFinal disables retries on a queue, as redis-message-queue does: a
// message whose handler returns an error is not delivered again; see KeepFailed.
// Reject still dead-letters a message. After a panic or the crash of a node, the
// message is delivered again.
func ErrorsAreFinal() QueueHandlerOption {
	return queueOption(func(s *settings) error {
		s.queue.finalErrors = true
		return nil
	})
}

// AtMostOnce disables the visibility timeout of a queue, so that no message is
// delivered twice. The messages that a node holds when it crashes are lost; they
// stay in the list of messages in processing. Errors and panics are final. A drain
// returns only messages that no handler has received.
func AtMostOnce() QueueHandlerOption {
	return queueOption(func(s *settings) error {
		s.queue.atMostOnce, s.queue.finalErrors = true, true
		s.tuned.LeaseTTL = 24 * time.Hour // no other consumer claims it
		return nil
	})
}

func (q *queueHandling) options(set settings, cfg Config) queuestore.SourceOptions {
	o := queuestore.SourceOptions{
		MaxDeliveries: set.tuned.MaxAttempts, DeadCap: cfg.DeadLetterCap,
		Completed: q.completed, Failed: q.failed, AtMostOnce: q.atMostOnce, FreeKeys: q.freesKeys,
	}
	return o
}

// queueRecords stores the records of a queue.
type queueRecords struct{ *queuestore.Queue }

// WriteCounts implements observe.RecordStore.
func (q queueRecords) WriteCounts(ctx context.Context, _, incarnation string, call uint64, c wakebelltype.ThroughputCounts) error {
	return q.Queue.WriteCounts(ctx, incarnation, call, c)
}

// WriteHistory implements observe.RecordStore.
func (q queueRecords) WriteHistory(ctx context.Context, _, node string, attempts []wakebelltype.Attempt) error {
	return q.Queue.WriteHistory(ctx, node, attempts)
}

// hints subscribes to the notifications of the System's topics and queues.
type hints struct{ s *System }

// Listen implements actors.Hints.
func (l hints) Listen(ctx context.Context, sources []string, deliver func(exchange.Hint)) error {
	var topics []string
	var queues []*queuestore.Queue
	for _, name := range sources {
		if q := l.s.queueNamed(name); q != nil {
			queues = append(queues, q)
		} else {
			topics = append(topics, name)
		}
	}
	return queuestore.Listen(ctx, l.s.store, topics, queues, deliver)
}

// queueNamed returns the queue of that full name that the System handles, or nil.
func (s *System) queueNamed(full string) *queuestore.Queue {
	q, _ := s.queues.Load(full)
	queue, _ := q.(*queuestore.Queue)
	return queue
}

// handles registers the queue of a handler, before its poller starts.
func (s *System) handles(h Handler) error {
	if h.set.queue == nil {
		return nil
	}
	name := h.set.queue.name
	name.Name = s.on.Prefix + name.Name
	q, err := queuestore.New(s.store, name)
	if err != nil {
		return err
	}
	s.queues.Store(q.Name(), q)
	return nil
}

// Reserves reports whether the keys of a queue of this name, given without the
// System's prefix, would lie among the keys of topics, recurring schedules or
// gates. A client with the permission to use any queue could then change those.
func (s *System) Reserves(queue string) bool {
	full := s.on.Prefix + queue
	if s.store.Keys().Tagged(full) != full {
		full = "{" + full // keys of queues begin so
	}
	for _, base := range append(s.store.Keys().Bases(), s.client.store.Timers().Audit.Key()) {
		if full == base || strings.HasPrefix(full, strings.TrimSuffix(base, ":")+":") {
			return true
		}
	}
	gates, _ := gates.NewKeyspace(s.on.GateKeys) // checked when the System was made
	return gates.Reserves(full) || schedulestore.Reserves(s.store.Keys().Beat, full)
}
