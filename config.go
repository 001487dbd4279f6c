package wakebell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/queuekeys"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops"
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

	// Scheduler makes this node fire recurring schedules; nil disables it.
	Scheduler *recurring.SchedulerConfig

	// Reminders makes this node store and deliver reminders for actors; nil
	// disables them.
	Reminders *reminder.Config

	// Name is the name of the root supervisor in the ActorSystem, without / and
	// $; default DefaultName. Each System of an ActorSystem needs its own name.
	Name string

	// Keys, Prefix, PayloadLimit, RetryFor, NoCoalescing, NoPayloadsApart and
	// ScheduleWindow are the fields of ClientConfig.
	// RetryFor applies to the calls of System.Client; the System's own requests
	// to Redis are retried with a backoff of their own.
	Keys         wakebelltype.Keys
	Prefix       string
	PayloadLimit int
	RetryFor     time.Duration

	NoCoalescing    bool
	NoPayloadsApart bool
	ScheduleWindow  time.Duration
	NoCounts        bool // neither what is scheduled, fired or published nor what this node handles is counted

	// NoDivision makes this node poll its topics without regard to the other nodes that
	// handle them. By default nodes that compete for the timers of a topic agree on a
	// primary, and the others help when it is busy or dead; see docs/scale.md.
	NoDivision bool

	// ReadFrom is the field of ClientConfig, for System.Client and the Gates: peers that
	// list and the dashboard read from replicas. Deliveries never do.
	ReadFrom redis.UniversalClient

	// MeterProvider, MetricTopics and MetricShards are the fields of ClientConfig, for
	// the Client and for all that this node runs.
	MeterProvider metric.MeterProvider
	MetricTopics  int
	MetricShards  bool

	// ScheduleMiddleware, TracerProvider and Propagator are the fields of
	// ClientConfig. They also apply to requests that actors of this process send to
	// the gateway. The TracerProvider makes a span of each delivery, too: it links
	// to the span that scheduled the timer.
	ScheduleMiddleware []wakebelltype.ScheduleMiddleware
	TracerProvider     trace.TracerProvider
	Propagator         propagation.TextMapPropagator

	// Payloads is the field of ClientConfig. It also decodes the bodies before they reach
	// Middleware and the handlers.
	Payloads *payload.Chain

	// TraceAsChild makes the span of a delivery a child of the span that scheduled
	// the timer. By default it begins a trace of its own, because days may lie
	// between the two.
	TraceAsChild bool

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

	// Gates configures System.Gates. Its Logger and Audit default to the System's.
	Gates gate.Config

	// Audit configures the record of operations of the System's Client, Gates and
	// Schedules.
	Audit wakebelltype.AuditConfig

	// Logger receives the System's log; nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 20 * time.Second
	}
	c.DrainTimeout = max(c.DrainTimeout, 0)
	c.Logger = usercode.Logger(c.Logger)
	if c.Gates.Logger == nil {
		c.Gates.Logger = c.Logger
	}
	if c.Gates.ReadFrom == nil {
		c.Gates.ReadFrom = c.ReadFrom
	}
	if c.Gates.Audit == (wakebelltype.AuditConfig{}) {
		c.Gates.Audit = c.Audit
	}
	return c
}

// tracer returns the tracer of deliveries and runs.
func (c Config) tracer() *tracing.Tracer {
	return tracing.New(tracing.Config{Provider: c.TracerProvider, Propagator: c.Propagator, Child: c.TraceAsChild})
}

// client returns the configuration of the System's Client.
func (c Config) client() ClientConfig {
	return ClientConfig{
		Keys: c.Keys, Prefix: c.Prefix, PayloadLimit: c.PayloadLimit, RetryFor: c.RetryFor, Logger: c.Logger, Audit: c.Audit,
		Celery: c.Scheduler != nil && c.Scheduler.Celery, Zone: c.zone(), NoCoalescing: c.NoCoalescing, NoPayloadsApart: c.NoPayloadsApart, NoCounts: c.NoCounts,
		ScheduleWindow: c.ScheduleWindow, ReadFrom: c.ReadFrom,
		MeterProvider: c.MeterProvider, MetricTopics: c.MetricTopics, MetricShards: c.MetricShards,
		ScheduleMiddleware: c.ScheduleMiddleware, Payloads: c.Payloads, TracerProvider: c.TracerProvider, Propagator: c.Propagator,
	}
}

// zone returns the time zone of crontabs without one.
func (c Config) zone() *time.Location {
	if c.Scheduler == nil {
		return nil
	}
	return c.Scheduler.Zone
}

func (c Config) validate() error {
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
	seen := map[string]bool{}
	for i, h := range c.Handlers {
		field := fmt.Sprintf("Handlers[%d]", i)
		if err := c.validateHandler(field, h); err != nil {
			errs = append(errs, err)
		} else if seen[h.topic] {
			errs = append(errs, argument.Invalid(field, "topic %s has a handler already", quoted(h.topic)))
		}
		seen[h.topic] = true
	}
	return errors.Join(errs...)
}

func (c Config) validateHandler(field string, h Handler) error {
	err := h.err
	switch {
	case h.fn == nil && h.batch == nil:
		return argument.Invalid(field, "zero Handler; use Handle, HandleBatch, Forward, HandleQueue, HandleQueueBatch or ForwardQueue")
	case h.batch == nil && h.set.batch != (poller.Batch{}):
		err = errors.Join(err, argument.Invalid("BatchSize", "the handler takes single timers; use HandleBatch or HandleQueueBatch, or Forward or ForwardQueue with BatchSize"))
	case h.topic == "":
		err = errors.Join(err, argument.Invalid("topic", "empty"))
	case len(c.Prefix+h.topic) > redisops.MaxName:
		err = errors.Join(err, argument.Invalid("topic", "%d bytes, at most %d", len(c.Prefix+h.topic), redisops.MaxName))
	}
	if h.set.queue != nil {
		name := h.set.queue.name
		name.Name = c.Prefix + name.Name
		err = errors.Join(err, queuekeys.Check(name))
	}
	if err = errors.Join(err, h.set.validate()); err != nil {
		return fmt.Errorf("%s (topic %s): %w", field, quoted(h.topic), err)
	}
	return nil
}
