package wakebell

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultPayloadLimit is the default of connection.Config.PayloadLimit, in bytes.
const DefaultPayloadLimit = connection.DefaultPayloadLimit

// Client schedules, cancels and inspects timers. It starts no goroutines and
// needs no Close; it is safe for concurrent use.
//
// Every call is idempotent. A Client retries a call whose outcome is unknown
// for connection.Config.RetryFor, and callers may retry it too. A retry may see the
// effect of the first try: Cancel then returns PresenceAbsent, Schedule finds the
// timer that the first try stored, and RunNow and Reschedule return ErrNotFound if
// the timer was due at once and has been handled meanwhile. Redrive and DeleteDead
// return the same counts as the first try.
type Client struct {
	conn  *connection.Connection
	on    *opened.Conn // its inside
	store *shards.Store
	reads *shards.Store // of listings and statistics: store, or that of ReadFrom

	joins     *joins.Store
	schedules *recurring.Schedules
	queues    *queue.Client
}

// NewClient returns a Client on the Redis of conn. It does not connect to Redis. The error
// wraps ErrInvalid.
func NewClient(conn *connection.Connection) (*Client, error) {
	on, err := opened.Of((*opened.Handle)(conn))
	if err != nil {
		return nil, err
	}
	store, err := on.Timers()
	if err != nil {
		return nil, err
	}
	from, err := on.Reader(store)
	if err != nil {
		return nil, err
	}
	schedules, err := recurring.New(conn)
	if err != nil {
		return nil, err
	}
	queues, err := queue.NewClient(conn)
	if err != nil {
		return nil, err
	}
	topics := shards.New(store)
	reads := topics
	if from != store {
		reads = shards.New(from)
	}
	return &Client{conn: conn, on: on, store: topics, reads: reads, joins: joins.New(topics), schedules: schedules, queues: queues}, nil
}

// Connection returns the Connection that was passed to NewClient.
func (c *Client) Connection() *connection.Connection {
	if c == nil {
		return nil
	}
	return c.conn
}

var errNoClient = argument.Invalid("client", "nil or zero; use NewClient")

// Queues returns a queue client with the Client's prefix, payload limit and
// RetryFor.
func (c *Client) Queues() *queue.Client {
	if c == nil {
		return nil
	}
	return c.queues
}

// Payloads returns connection.Config.Payloads with its limit; nil: none.
func (c *Client) Payloads() *payload.Chain {
	if c == nil || c.on == nil {
		return nil
	}
	return c.on.Payloads
}

// Prefix returns connection.Config.Prefix.
func (c *Client) Prefix() string {
	if c == nil || c.on == nil {
		return ""
	}
	return c.on.Prefix
}

// fullName puts the prefix before the name of a topic, which must not be
// empty.
func (c *Client) fullName(topic string) (string, error) {
	if c == nil || c.store == nil {
		return "", errNoClient
	}
	full := c.on.Prefix + topic
	switch {
	case topic == "":
		return "", argument.Invalid("topic", "empty")
	case len(full) > wakebelltype.MaxName:
		return "", argument.Invalid("topic", "%d bytes, at most %d", len(full), wakebelltype.MaxName)
	}
	return full, nil
}

// fullParts puts the prefix before the topics of parts, which a field has.
func (c *Client) fullParts(field string, parts []wakebelltype.Part) ([]wakebelltype.Part, error) {
	full := make([]wakebelltype.Part, len(parts))
	for i, p := range parts {
		name, err := c.fullName(p.Topic)
		if err != nil {
			return nil, fmt.Errorf("%s: part %d: %w", field, i, err)
		}
		full[i] = wakebelltype.Part{Topic: name, ID: p.ID}
	}
	return full, nil
}

// Cancel removes timers of a topic and returns the states in which it found
// them, in the order of ids. The context of a handler that runs on one of them is
// cancelled with the cause ErrCancelled, also if the id is scheduled again at once: on the
// hint that Redis publishes, or else at the next extension of its lease.
func (c *Client) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebelltype.Presence, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return nil, err
	}
	return c.store.Cancel(ctx, full, ids...)
}

// CancelAll removes all timers of a topic, including running ones, and returns
// their number. Dead letters stay.
func (c *Client) CancelAll(ctx context.Context, topic string) (int64, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return 0, err
	}
	n, err := c.store.CancelAll(ctx, full)
	c.record(ctx, wakebelltype.AuditTopicCancelAll, full, audit.Result{Count: n, Err: err})
	return n, err
}

// Forget removes all data of a topic from Redis: its timers, its dead letters
// and its name in the list of topics. What Once remembers of their ids ends with its
// window. Use it for topics that are no longer in use.
func (c *Client) Forget(ctx context.Context, topic string) error {
	full, err := c.fullName(topic)
	if err != nil {
		return err
	}
	err = c.store.Forget(ctx, full)
	c.record(ctx, wakebelltype.AuditTopicForget, full, audit.One("", err))
	return err
}

// RemoveTopic removes the name of a topic from the list of topics, unless the topic has
// timers, dead letters or cluster-wide settings, or a node handles it. Python workers
// and other clients of the topic are not seen: a Client that schedules on it again lists
// it again within a minute. Errors include ErrDenied, if the Redis user may not count
// subscriptions.
func (c *Client) RemoveTopic(ctx context.Context, topic string) (wakebelltype.TopicRemoval, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.TopicRemoval{}, err
	}
	r, err := c.store.RemoveTopic(ctx, full)
	if r.Existed && r.Use == "" {
		c.record(ctx, wakebelltype.AuditTopicRemove, full, audit.One("", err))
	}
	return r, err
}

// Schedules returns the recurring schedules in the Client's Redis, with the
// Client's keys, prefix and payload limit.
func (c *Client) Schedules() *recurring.Schedules { return c.schedules }

// Reschedule gives a timer a new instant, by In or At, and keeps its body. The
// result counts as a new timer: its next delivery is attempt 1, and a running
// handler is superseded, so that the timer is delivered again at the new instant.
// The Outcome is OutcomeMoved or OutcomeSuperseded. Errors include ErrNotFound.
func (c *Client) Reschedule(ctx context.Context, topic, id string, when ScheduleOption) (wakebelltype.Scheduled, error) {
	var d Draft
	if when == nil {
		return wakebelltype.Scheduled{}, argument.Invalid("when", "nil")
	}
	if err := when(&d); err != nil {
		return wakebelltype.Scheduled{}, err
	}
	if !d.planned || d.policy != wakebelltype.PolicyReplace {
		return wakebelltype.Scheduled{}, argument.Invalid("when", "want In or At")
	}
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	s, err := c.store.Reschedule(ctx, full, id, d.at, d.in)
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	return s, nil
}

// RunNow makes a timer due now, and returns the state in which it found it:
// PresencePending or PresenceRunning. A timer that waits for its next attempt keeps
// its Activation and its attempts; a timer that was not delivered yet gets the
// present as its Activation. A timer that is due or running is not changed. Errors
// include ErrNotFound.
func (c *Client) RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.PresenceAbsent, err
	}
	return c.store.RunNow(ctx, full, id)
}
