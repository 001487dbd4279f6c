package wakebell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/reminder"
)

// DefaultName is the name of a System in its ActorSystem.
const DefaultName = actors.DefaultName

// Config configures a System. The zero value works; it handles nothing, and
// schedules by message.
type Config struct {
	// Handlers are the topics that this node handles, each at most once.
	Handlers []Handler

	// Middleware wraps the handling of all topics; the first is the outermost.
	Middleware []Middleware

	// Scheduler makes this node fire recurring schedules; nil: it fires none.
	Scheduler *recurring.SchedulerConfig

	// Reminders makes this node store and deliver reminders for actors; nil: it has
	// none.
	Reminders *reminder.Config

	// Name is the root supervisor's name in the ActorSystem; default
	// DefaultName. Several Systems in one ActorSystem need different ones.
	Name string

	// Keys, Prefix and PayloadLimit are those of ClientConfig; RetryFor is that
	// of System.Client. What the System itself asks of Redis has a backoff of its
	// own.
	Keys         Keys
	Prefix       string
	PayloadLimit int
	RetryFor     time.Duration

	// DrainTimeout is how long Stop waits for running handlers before their
	// contexts end, and for OnDead; default 20 s, at most 1 h, negative: not at
	// all. Stop takes at most 7 s more than this, and does not use it when no
	// handler runs and nothing is left to settle, even while Redis is down.
	DrainTimeout time.Duration

	// WaitForRedis is how long Start tries a Redis that is unavailable;
	// default 0: it fails at once. Once started, a System waits for as long as
	// it takes.
	WaitForRedis time.Duration

	// DeadLetterCap bounds the dead letters of each topic, the oldest are
	// dropped; Redis may keep about 100 more, which it drops in one go. Default
	// 0: none is ever dropped.
	DeadLetterCap int64

	// OnDead is called for each timer that this node has made a dead letter,
	// whatever the reason, after Redis has confirmed it: normally once. It is
	// not called for a timer that was dead before, nor for one that was rejected
	// where DiscardRejected says so. A node that dies in between does not call
	// it, so it is for telling people, not for keeping books: the dead letter
	// stays in any case.
	//
	// It is called outside of the delivery, one call at a time, for all topics.
	// Up to 1,000 dead letters (and 16 MiB) wait for it; for what dies beyond,
	// it is not called, which Counters count and the log says. A panic is logged.
	// Its context ends when Stop's DrainTimeout is over.
	OnDead func(context.Context, DeadLetter)

	// Gates configures System.Gates. Its Logger is the System's unless set.
	Gates gate.Config

	// Logger; nil means slog.Default().
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
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Gates.Logger == nil {
		c.Gates.Logger = c.Logger
	}
	return c
}

// client is the configuration of the System's Client.
func (c Config) client() ClientConfig {
	return ClientConfig{
		Keys: c.Keys, Prefix: c.Prefix, PayloadLimit: c.PayloadLimit, RetryFor: c.RetryFor, Logger: c.Logger,
		Celery: c.Scheduler != nil && c.Scheduler.Celery,
	}
}

// zone returns the time zone of crontabs that name none.
func (c Config) zone() *time.Location {
	if c.Scheduler == nil {
		return nil
	}
	return c.Scheduler.Zone
}

func (c Config) validate() error {
	var errs []error
	if strings.ContainsAny(c.Name, "/$") {
		errs = append(errs, invalid("Name", "%q has a / or a $, which actor names give a meaning", c.Name))
	}
	errs = append(errs, within("DrainTimeout", c.DrainTimeout, 0, time.Hour), c.Scheduler.Validate(), c.Reminders.Validate())
	if c.WaitForRedis < 0 {
		errs = append(errs, invalid("WaitForRedis", "negative"))
	}
	if c.DeadLetterCap < 0 {
		errs = append(errs, invalid("DeadLetterCap", "negative"))
	}
	if slices.ContainsFunc(c.Middleware, func(m Middleware) bool { return m == nil }) {
		errs = append(errs, invalid("Middleware", "nil"))
	}
	seen := map[string]bool{}
	for i, h := range c.Handlers {
		field := fmt.Sprintf("Handlers[%d]", i)
		if err := c.validateHandler(field, h); err != nil {
			errs = append(errs, err)
		} else if seen[h.topic] {
			errs = append(errs, invalid(field, "topic %s has a handler already", quoted(h.topic)))
		}
		seen[h.topic] = true
	}
	return errors.Join(errs...)
}

func (c Config) validateHandler(field string, h Handler) error {
	err := h.err
	switch {
	case h.fn == nil:
		return invalid(field, "the zero Handler; use Handle or Forward")
	case h.topic == "":
		err = errors.Join(err, invalid("topic", "empty"))
	case len(c.Prefix+h.topic) > redisops.MaxName:
		err = errors.Join(err, invalid("topic", "%d bytes, at most %d", len(c.Prefix+h.topic), redisops.MaxName))
	}
	if h.set.queue != nil {
		name := h.set.queue.name
		name.Name = c.Prefix + name.Name
		err = errors.Join(err, name.Validate())
	}
	if err = errors.Join(err, h.set.validate()); err != nil {
		return fmt.Errorf("%s (topic %s): %w", field, quoted(h.topic), err)
	}
	return nil
}
