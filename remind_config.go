package wakebell

import (
	"context"
	"errors"
	"net/url"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops"
)

// DefaultRemindersTopic is where reminders are kept.
const DefaultRemindersTopic = "wakebell.reminders"

// RemindersConfig has a System keep reminders of actors. As is required.
type RemindersConfig struct {
	// As names this node among all that share the Redis, over its restarts: 1 to
	// 128 bytes of UTF-8. Reminders of its actors are kept under that name and
	// delivered by the node that has it, so no two that run may share one.
	As string

	// Topic is where reminders are kept, default DefaultRemindersTopic: those of
	// identities in the topic itself, those of a node's actors in the topic with
	// a colon and the name of the node (escaped as in a URL) behind it.
	Topic string

	// AckTimeout is how long an actor has to answer a reminder, 1 ms to 1 h;
	// default 10 s. Without an answer it is reminded again after a backoff.
	AckTimeout time.Duration

	// Cluster reaches the identities of a cluster; nil: this node reminds none.
	Cluster Cluster

	// Handler are options of the delivery, as of Handle: MaxAttempts and
	// RetryBackoff say how often and when one comes again that was not
	// acknowledged. MaxConcurrent, here by default 100, bounds the reminders that
	// await an answer.
	Handler []HandlerOption
}

// Cluster reaches the actors of a cluster by their identities; protoactor's
// cluster does with a function of two lines, see docs/reminders.md.
type Cluster interface {
	// Request sends a message, a *messages.Reminder, to the actor of an identity,
	// which is activated where it is not, and returns its answer.
	Request(ctx context.Context, kind, identity string, message proto.Message) (answer any, err error)
}

const (
	defaultAckTimeout    = 10 * time.Second
	remindedAtOnce       = 100
	maxNodeName          = 128
	remindersField       = "Reminders"
	remindersOfNodeAfter = ":"
)

func (c *RemindersConfig) withDefaults() *RemindersConfig {
	if c == nil {
		return nil
	}
	d := *c
	if d.Topic == "" {
		d.Topic = DefaultRemindersTopic
	}
	if d.AckTimeout == 0 {
		d.AckTimeout = defaultAckTimeout
	}
	d.Handler = append([]HandlerOption{MaxConcurrent(remindedAtOnce)}, c.Handler...)
	return &d
}

func (c *RemindersConfig) validate(prefix string) error {
	if c == nil {
		return nil
	}
	errs := []error{within(remindersField+".AckTimeout", c.AckTimeout, time.Millisecond, time.Hour)}
	if c.As == "" || len(c.As) > maxNodeName || text.Valid(c.As) != c.As {
		errs = append(errs, invalid(remindersField+".As", "%s, want 1 to %d bytes of UTF-8 that name this node over its restarts", quoted(c.As), maxNodeName))
	}
	if n := len(prefix) + len(c.nodeTopic()); n > redisops.MaxName {
		errs = append(errs, invalid(remindersField+".Topic", "%d bytes with As, at most %d", n, redisops.MaxName))
	}
	return errors.Join(errs...)
}

func (c *RemindersConfig) nodeTopic() string {
	return c.Topic + remindersOfNodeAfter + url.PathEscape(c.As)
}

// handlers are those of the topics of reminders that this node has.
func (r *Reminders) handlers() []Handler {
	if r.cfg == nil {
		return nil
	}
	handlers := []Handler{Handle(r.node, r.deliver, r.cfg.Handler...)}
	if r.cfg.Cluster != nil {
		handlers = append(handlers, Handle(r.cluster, r.deliver, r.cfg.Handler...))
	}
	return handlers
}

func newReminders(s *System, cfg *RemindersConfig) *Reminders {
	r := &Reminders{system: s, cfg: cfg}
	if cfg != nil {
		r.node = NewTopic[*messages.KeptReminder](cfg.nodeTopic())
		r.cluster = NewTopic[*messages.KeptReminder](cfg.Topic)
	}
	return r
}
