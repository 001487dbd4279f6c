package reminder

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultTopic is the default of Config.Topic.
const DefaultTopic = "wakebell.reminders"

// Config makes a node store and deliver reminders (wakebell.Config). Node is
// required; the zero value of each other field is its default.
type Config struct {
	// Node names this node among all nodes that share the Redis, also after a
	// restart: 1 to 128 bytes of UTF-8. Reminders of its actors are stored under
	// this name and delivered by the node that has it, so no two running nodes
	// may share one.
	Node string

	// Topic is the topic of the reminders, default DefaultTopic. Reminders of
	// identities are in the topic itself, those of a node's actors in the topic
	// TOPIC:NODE, with the name of the node escaped as in a URL.
	Topic string

	// AckTimeout is how long an actor has to answer a reminder, 1 ms to 1 h;
	// default 10 s. Without an answer the reminder is delivered again after a
	// backoff.
	AckTimeout time.Duration

	// Cluster reaches the identities of a cluster; nil: this node delivers no
	// reminders to identities.
	Cluster Cluster

	// MaxConcurrent is the maximum number of reminders of a topic that this node
	// delivers at once, 1 to 10,000; default 100.
	MaxConcurrent int

	// MaxAttempts is the failure at which a reminder is dead-lettered, 1 to 1,000,000;
	// default 25. A reminder is also dead-lettered after MaxAttempts + 10 deliveries
	// that ended without a verdict, such as crashes.
	MaxAttempts int

	// RetryInitial is the delay after the first failure, which doubles with each
	// further one up to RetryLimit. Each delay has a jitter of ±20 %. 1 ms to 30
	// days; defaults 1 s and 1 h.
	RetryInitial, RetryLimit time.Duration
}

// Cluster reaches the actors of a cluster by their identities. docs/reminders.md
// has the adapter for the cluster of protoactor-go.
type Cluster interface {
	// Request sends a *messages.Reminder to the actor of an identity, which is
	// activated if it is not active, and returns its answer.
	Request(ctx context.Context, kind, identity string, message proto.Message) (answer any, err error)
}

const (
	maxNodeName        = 128
	nodeTopicSeparator = ":"
)

func (c *Config) withDefaults() *Config {
	if c == nil {
		return nil
	}
	d := *c
	setDefault(&d.Topic, DefaultTopic)
	setDefault(&d.AckTimeout, 10*time.Second)
	setDefault(&d.MaxConcurrent, 100)
	setDefault(&d.MaxAttempts, 25)
	setDefault(&d.RetryInitial, time.Second)
	setDefault(&d.RetryLimit, max(time.Hour, d.RetryInitial))
	return &d
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// Validate reports all that is wrong with Node, Topic and AckTimeout; nil is
// valid. Errors wrap wakebell.ErrInvalid. wakebell.New also checks the other
// fields.
func (c *Config) Validate() error {
	if c == nil {
		return nil
	}
	c = c.withDefaults()
	errs := []error{argument.Within("Reminders.AckTimeout", c.AckTimeout, time.Millisecond, time.Hour)}
	if c.Node == "" || len(c.Node) > maxNodeName || !utf8.ValidString(c.Node) {
		errs = append(errs, argument.Invalid("Reminders.Node", "%s, want 1 to %d bytes of UTF-8 that name this node, also after a restart", argument.Quote(c.Node), maxNodeName))
	}
	if n := len(c.nodeTopic()); n > wakebelltype.MaxName {
		errs = append(errs, argument.Invalid("Reminders.Topic", "%d bytes with Node, at most %d", n, wakebelltype.MaxName))
	}
	return errors.Join(errs...)
}

func (c *Config) nodeTopic() string {
	return c.Topic + nodeTopicSeparator + url.PathEscape(c.Node)
}

// isReminderTopic reports whether a topic is that of the reminders of identities
// or of any node, or one of its shards.
func isReminderTopic(base, topic string) bool {
	rest, ok := strings.CutPrefix(topic, base)
	return ok && (rest == "" || strings.HasPrefix(rest, nodeTopicSeparator) || strings.HasPrefix(rest, sharding.Separator))
}
