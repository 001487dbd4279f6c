// Package wakebell delivers durable timers to actors. A timer is a message
// that is delivered to a handler at or after a given instant, at least once,
// also when processes crash. Redis stores the timers, protoactor-go actors
// deliver them.
//
// # Usage
//
// A [Topic] names a kind of timer and the type of its bodies. A [Client]
// schedules, cancels and inspects timers; a [System] calls the handlers. Both are made
// from a connection, which package connection configures:
//
//	var Invoices = wakebell.NewTopic[Invoice]("invoices")
//
//	conn, err := connection.New(rdb, connection.Config{})
//	sys, err := wakebell.New(actorSystem, conn, wakebell.Config{Handlers: []wakebell.Handler{
//		wakebell.Handle(Invoices, charge, wakebell.MaxConcurrent(20)),
//	}})
//	err = sys.Run(ctx) // until ctx ends, then drains
//
//	c, err := wakebell.NewClient(conn)
//	id, err := Invoices.Schedule(ctx, c, inv, wakebell.In(72*time.Hour), wakebell.ID("inv-42"))
//
// [Client.Schedules] stores recurring schedules. A System fires them if its
// configuration has a Scheduler.
//
// An actor in the same ActorSystem finds the System with [SystemOf]. To schedule
// without waiting for Redis, it sends a message to the [System.Gateway].
//
// # Guarantees
//
// A timer is delivered at least once, never before its instant by Redis's
// clock, and stays in Redis until the success of a handler is written. It may be
// delivered more than once: after a crash, or after its lease was lost. The
// System extends the lease while the handler runs, and cancels the handler's
// context when the lease is lost. Settlements are fenced: a handler that lost
// its lease cannot change the timer.
//
// Scheduling an existing id replaces the timer. A handler that runs at that
// moment continues, and its verdict does not affect the new timer, so a handler
// may schedule its own id.
//
// # Concurrency
//
// All types are safe for concurrent use. Up to [MaxConcurrent] goroutines of
// each node call a handler's function at once. Timers are claimed in the order
// of their instants; handlers that run concurrently may finish in another order.
//
// # Python
//
// Keys and bytes are those of faststream-redis-timers: either side can
// schedule, deliver, cancel and inspect timers of the other. See docs/keys.md.
//
// # Errors
//
// Errors wrap the sentinels of this package, for errors.Is; [Retryable] reports
// whether the same call may succeed later.
//
//	ErrUnavailable     retryable; the outcome is unknown, and the call was
//	                   already retried for connection.Config.RetryFor
//	ErrMemoryFull      retryable; nothing was written
//	ErrTooFewReplicas  retryable; the timer is stored
//	context.DeadlineExceeded
//	                   retryable; the outcome is unknown
//	ErrInvalid         an argument is wrong; the text names it and its bound,
//	                   nothing was written
//	ErrNotFound        the timer, dead letter or recurring schedule does not exist
//	ErrTooLarge        another program wrote a payload over the limit for
//	                   reading; the timer is dead-lettered when it is due
//	ErrDenied, ErrWrongType, ErrUnsupported
//	                   the Redis server, its users or its keys need a correction
//	ErrLeaseLost, ErrCancelled, ErrSuperseded, ErrSettled
//	                   Meta.Settle and Meta.Extend: the handler no longer holds
//	                   the timer
package wakebell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/queuekeys"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultName is the name of a System in its ActorSystem.
const DefaultName = actors.DefaultName

// Config configures a System. With the zero value, the System handles no topic
// and its gateway schedules timers.
type Config struct {
	// Handlers are the handlers of this node, at most one for each topic or
	// queue.
	Handlers []Handler

	// Middleware wraps the handlers of all topics and queues; the first is the
	// outermost.
	Middleware []Middleware

	// BatchMiddleware wraps the handlers of batches, which Middleware does not; the first
	// is the outermost. With Middleware and handlers of batches it must not be nil: an
	// empty list says that the batches have none.
	BatchMiddleware []BatchMiddleware

	// Scheduler makes this node fire recurring schedules; nil disables it.
	Scheduler *recurring.SchedulerConfig

	// Reminders makes this node store and deliver reminders for actors; nil
	// disables them.
	Reminders *reminder.Config

	// Name is the name of the root supervisor in the ActorSystem, without / and
	// $; default DefaultName. Each System of an ActorSystem needs its own name.
	Name string

	// DrainTimeout is how long Stop waits for running handlers before it cancels
	// their contexts, and for OnDead: up to 1 h, default 20 s; a negative value
	// means no wait. Stop takes at most 7 s longer. It returns earlier, also
	// while Redis is down, if no handler runs and no settlement is left.
	DrainTimeout time.Duration

	// WaitForRedis is how long Start retries while Redis is unavailable;
	// default 0, which means that Start fails at once. After Start, the System
	// recovers from outages of any length.
	WaitForRedis time.Duration

	// DeadLetterCap bounds the number of dead letters of each topic, and of each shard of a
	// topic that has several, by dropping the oldest. Redis may keep about 100 more, because
	// it drops them in batches. Default 0, which means no bound.
	DeadLetterCap int64

	// OnDead is called when this node has dead-lettered a timer, after Redis
	// confirmed it: normally once for each timer. It is not called for a timer
	// that was discarded because of DiscardRejected. A node that crashes in
	// between does not call it, so use it for notifications, not for accounting:
	// the dead letter is stored in any case.
	//
	// Calls are sequential for all topics, and outside of deliveries. Up to
	// 1,000 dead letters and 16 MiB wait for a call; OnDead is not called for
	// dead letters beyond that, which are counted in Counters and logged. A panic
	// is logged. The context is cancelled when Stop's DrainTimeout is over.
	OnDead func(context.Context, DeadLetter)

	// Gates configures System.Gates.
	Gates gate.Config
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 20 * time.Second
	}
	c.DrainTimeout = max(c.DrainTimeout, 0)
	return c
}

// validate reports all that is wrong with the configuration of a System whose topics have
// a prefix.
func (c Config) validate(prefix string) error {
	var errs []error
	if strings.ContainsAny(c.Name, "/$") {
		errs = append(errs, argument.Invalid("Name", "%q contains / or $, which are reserved in actor names", c.Name))
	}
	errs = append(errs, within("DrainTimeout", c.DrainTimeout, 0, time.Hour), c.Scheduler.Validate(), c.Reminders.Validate())
	if c.WaitForRedis < 0 {
		errs = append(errs, argument.Invalid("WaitForRedis", "negative"))
	}
	if c.DeadLetterCap < 0 {
		errs = append(errs, argument.Invalid("DeadLetterCap", "negative"))
	}
	if slices.ContainsFunc(c.Middleware, func(m Middleware) bool { return m == nil }) {
		errs = append(errs, argument.Invalid("Middleware", "nil"))
	}
	if slices.ContainsFunc(c.BatchMiddleware, func(m BatchMiddleware) bool { return m == nil }) {
		errs = append(errs, argument.Invalid("BatchMiddleware", "nil middleware"))
	}
	if len(c.Middleware) > 0 && c.BatchMiddleware == nil && slices.ContainsFunc(c.Handlers, func(h Handler) bool { return h.batch != nil }) {
		errs = append(errs, argument.Invalid("BatchMiddleware", "nil; Middleware does not wrap handlers of batches: set an empty list if they need none"))
	}
	seen := map[string]bool{}
	for i, h := range c.Handlers {
		field := fmt.Sprintf("Handlers[%d]", i)
		if err := validateHandler(field, prefix, h); err != nil {
			errs = append(errs, err)
		} else if seen[h.topic] {
			errs = append(errs, argument.Invalid(field, "topic %s has a handler already", quoted(h.topic)))
		}
		seen[h.topic] = true
	}
	return errors.Join(errs...)
}

func validateHandler(field, prefix string, h Handler) error {
	err := h.err
	switch {
	case h.fn == nil && h.batch == nil:
		return argument.Invalid(field, "zero Handler; use Handle, HandleBatch, Forward, HandleQueue, HandleQueueBatch or ForwardQueue")
	case h.batch == nil && h.set.batch != (poller.Batch{}):
		err = errors.Join(err, argument.Invalid("BatchSize", "the handler takes single timers; use HandleBatch or HandleQueueBatch, or Forward or ForwardQueue with BatchSize"))
	case h.batch != nil && len(h.set.middleware) > 0:
		err = errors.Join(err, argument.Invalid("With", "the handler takes batches, which middleware of With and Group does not wrap; use WithBatch"))
	case h.batch == nil && len(h.set.batchMiddleware) > 0:
		err = errors.Join(err, argument.Invalid("WithBatch", "the handler takes single timers; use With"))
	case h.topic == "":
		err = errors.Join(err, argument.Invalid("topic", "empty"))
	case len(prefix+h.topic) > wakebelltype.MaxName:
		err = errors.Join(err, argument.Invalid("topic", "%d bytes, at most %d", len(prefix+h.topic), wakebelltype.MaxName))
	}
	if h.set.queue != nil {
		name := h.set.queue.name
		name.Name = prefix + name.Name
		err = errors.Join(err, queuekeys.Check(name))
	}
	if err = errors.Join(err, h.set.validate()); err != nil {
		return fmt.Errorf("%s (topic %s): %w", field, quoted(h.topic), err)
	}
	return nil
}
