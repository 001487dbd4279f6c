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

	// DeadLetterCap bounds the number of dead letters of each topic by dropping
	// the oldest. Redis may keep about 100 more, because it drops them in
	// batches. Default 0, which means no bound.
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
