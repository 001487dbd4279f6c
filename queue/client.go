package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/clientstore"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/audit"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ErrFull says that as many messages wait as PendingCap allows; the message was not
// published.
var ErrFull = redisops.ErrQueueFull

const (
	roomFirst = 5 * time.Millisecond // until a full queue is tried again, doubled
	roomLast  = 250 * time.Millisecond
)

// Config configures a client of queues; the zero value works.
type Config struct {
	// Prefix is put before the name of every queue.
	Prefix string

	// HashTag puts the names of queues in braces in the keys, so that all keys of a
	// queue are in one slot of a Redis Cluster.
	HashTag bool

	// PayloadLimit bounds a body, in bytes, 0 to 512 MiB; 0 means 1 MiB.
	PayloadLimit int

	// RetryFor is for how long a call is made again, with growing, jittered delays
	// from 25 ms to 1 s, while Redis is unavailable. 0 means until the deadline of
	// the context, or for 2 s without one. A positive value bounds both. With a
	// negative value each call is made once.
	RetryFor time.Duration

	// Audit configures the record of the operations Purge, PurgeKept, RedriveDeadLetter
	// and DeleteDeadLetters; see wakebell.Client.Audit.
	Audit wakebelltype.AuditConfig

	// Logger receives warnings that no call returns; nil means slog.Default().
	Logger *slog.Logger

	// MeterProvider makes the instruments of docs/metrics.md; nil means the global
	// provider of OpenTelemetry. MetricTopics is how many queues have a label of their
	// own; 0 means 1,000.
	MeterProvider metric.MeterProvider
	MetricTopics  int

	// ScheduleMiddleware, TracerProvider and Propagator are the fields of
	// wakebell.ClientConfig. Their headers are stored with a message and reach the
	// handlers of Wakebell; consumers in Python ignore them, and dead letters have
	// none.
	ScheduleMiddleware []wakebelltype.ScheduleMiddleware
	TracerProvider     trace.TracerProvider
	Propagator         propagation.TextMapPropagator
}

const (
	defaultPayloadLimit = 1 << 20
	maxPayloadLimit     = 512 << 20 // a Redis string holds no more
)

// Client publishes to queues, inspects them and redrives their dead letters. It
// starts nothing and needs no Close; it is safe for concurrent use. Every call may
// be made again when its outcome is unknown.
type Client struct {
	store  *timers.Timers
	prefix string
	limit  int
	edge   *outgoing.Edge
}

// Publisher publishes messages to queues: a Client, or that of package remote.
type Publisher interface {
	Publish(ctx context.Context, drafts ...Draft) ([]wakebelltype.QueuePublished, error)
}

// Operator inspects queues and redrives their dead letters: a Client, or that
// of package remote.
type Operator interface {
	List(ctx context.Context, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueName, error]
	Stats(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueStats, error)
	Messages(ctx context.Context, name wakebelltype.QueueKeys, running bool, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueMessage, error]
	Purge(ctx context.Context, name wakebelltype.QueueKeys, running bool) (int64, error)
	PurgeKept(ctx context.Context, name wakebelltype.QueueKeys) (int64, error)

	DeadLetters(ctx context.Context, name wakebelltype.QueueKeys, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueDeadLetter, error]
	DeadLetter(ctx context.Context, name wakebelltype.QueueKeys, entry string) (wakebelltype.QueueDeadLetter, error)
	RedriveDeadLetter(ctx context.Context, name wakebelltype.QueueKeys, l wakebelltype.QueueDeadLetter, o RedriveOptions) (wakebelltype.QueueRedriveOutcome, string, error)
	DeleteDeadLetters(ctx context.Context, name wakebelltype.QueueKeys, letters ...wakebelltype.QueueDeadLetter) (int, error)
}

var (
	_ Publisher = (*Client)(nil)
	_ Operator  = (*Client)(nil)
)

// NewClient makes a client of queues on rdb, which the caller owns and closes. It
// does not call Redis yet. Errors wrap wakebell.ErrInvalid.
func NewClient(rdb redis.UniversalClient, cfg Config) (*Client, error) {
	if rdb == nil {
		return nil, argument.Invalid("rdb", "nil")
	}
	if err := argument.Within("PayloadLimit", cfg.PayloadLimit, 0, maxPayloadLimit); err != nil {
		return nil, err
	}
	edge, err := outgoing.New(cfg.ScheduleMiddleware, cfg.TracerProvider, cfg.Propagator, cmp.Or(cfg.PayloadLimit, defaultPayloadLimit))
	if err != nil {
		return nil, err
	}
	store, err := timers.New(rdb, wakebelltype.Keys{HashTag: cfg.HashTag})
	if err != nil {
		return nil, err
	}
	store.Retry = redisops.RetryFor(cfg.RetryFor)
	if store.Audit, err = clientstore.OpenAudit(rdb, cfg.Audit, cmp.Or(cfg.Logger, slog.Default()), store.Retry); err != nil {
		return nil, err
	}
	store.Metrics = metrics.New(metrics.Options{Provider: cfg.MeterProvider, Topics: max(cfg.MetricTopics, 0)})
	return &Client{store: store, prefix: cfg.Prefix, limit: cmp.Or(cfg.PayloadLimit, defaultPayloadLimit), edge: edge}, nil
}

// Publish publishes messages to one or several queues, in order. It checks all
// drafts before it publishes the first. Consecutive messages of one queue are
// published in one atomic round trip, up to 500 of them and 1 MiB.
//
// After an error, the messages that are returned are published, and the others may
// be. Call Publish again with the same drafts: it publishes no message twice within
// a minute or, if all drafts have deduplication keys, within the window.
func (c *Client) Publish(ctx context.Context, drafts ...Draft) ([]wakebelltype.QueuePublished, error) {
	if c == nil || c.edge.Plain(ctx) {
		return c.publish(ctx, drafts)
	}
	for i, d := range drafts {
		if d.Err != nil {
			return nil, fmt.Errorf("message %d: %w", i, d.Err)
		}
	}
	var out []wakebelltype.QueuePublished
	err := outgoing.Each(ctx, c.edge, "publish", drafts, (*Draft).outgoing, (*Draft).apply, func(ctx context.Context, drafts []Draft) (err error) {
		out, err = c.publish(ctx, drafts)
		return err
	})
	return out, err
}

// outgoing returns the draft as the schedule middleware sees it.
func (d *Draft) outgoing() *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{Kind: wakebelltype.OutgoingMessage, Topic: d.Queue.Keys.Name, Body: d.Payload, Headers: d.Headers}
}

// apply sets what the schedule middleware may change.
func (d *Draft) apply(o *wakebelltype.Outgoing) { d.Payload, d.Headers = o.Body, o.Headers }

// publish publishes drafts as they are.
func (c *Client) publish(ctx context.Context, drafts []Draft) ([]wakebelltype.QueuePublished, error) {
	all := make([]message, len(drafts))
	for i, d := range drafts {
		var err error
		if all[i], err = c.check(d); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	out := make([]wakebelltype.QueuePublished, 0, len(all))
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].settings == all[from].settings {
			to++
		}
		part, err := publishOne(ctx, all[from:to])
		out = append(out, part...)
		if err != nil {
			return out, err
		}
		from = to
	}
	return out, nil
}

// message is a draft that was checked.
type message struct {
	settings Settings
	queue    *queuestore.Queue
	message  queuestore.Message
}

func (c *Client) check(d Draft) (message, error) {
	if d.Err != nil {
		return message{}, d.Err
	}
	if err := d.Queue.validate(); err != nil {
		return message{}, err
	}
	q, err := c.queue(d.Queue.Keys)
	if err != nil {
		return message{}, err
	}
	size := len(d.Payload)
	for _, h := range d.Headers {
		size += len(h.Key) + len(h.Value)
	}
	if size > c.limit {
		return message{}, argument.Invalid("body", "%d bytes with its headers, the limit is %d", size, c.limit)
	}
	m, err := queuestore.MessageOf(d.Payload, d.Key, d.Tail)
	m.Headers = d.Headers
	return message{d.Queue, q, m}, err
}

// publishOne publishes messages of one queue. With FullWaits it waits for room.
func publishOne(ctx context.Context, messages []message) (out []wakebelltype.QueuePublished, err error) {
	all := make([]queuestore.Message, len(messages))
	for i, m := range messages {
		all[i] = m.message
	}
	queue, set := messages[0].queue, messages[0].settings
	options := queuestore.PublishOptions{
		Window: set.DeduplicationWindow, Cap: set.PendingCap,
		DropOldest: set.WhenFull == FullDropsOldest, OwnKeys: set.FreeKeyOnFailure,
	}
	var full error
	for pause := roomFirst; ; pause = min(2*pause, roomLast) {
		part, _, err := queue.Publish(ctx, options, all[len(out):]...)
		out = append(out, part...)
		switch {
		case err == nil:
			return out, nil
		case !errors.Is(err, ErrFull):
			return out, errors.Join(full, err)
		case set.WhenFull != FullWaits:
			return out, err
		}
		full = err
		select {
		case <-ctx.Done():
			return out, errors.Join(full, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// queue is the store of a queue under its full name.
func (c *Client) queue(name wakebelltype.QueueKeys) (*queuestore.Queue, error) {
	switch {
	case c == nil || c.store == nil:
		return nil, argument.Invalid("client", "nil or zero; use NewClient")
	case name.Name == "":
		return nil, argument.Invalid("queue", "empty")
	}
	name.Name = c.prefix + name.Name
	return queuestore.New(c.store, name)
}

// List yields the queues that a Client published to or a node handled, sorted, each
// once: those whose names begin with the client's prefix, without it. Queues that only
// Python uses are not known. Page.After is a Cursor. It reads all names before it
// yields the first. An error is yielded last.
func (c *Client) List(ctx context.Context, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueName, error] {
	return paging.Limited(p, func(yield func(wakebelltype.QueueName, error) bool) {
		if c == nil || c.store == nil {
			yield(wakebelltype.QueueName{}, argument.Invalid("client", "nil or zero; use NewClient"))
			return
		}
		scan := func(cursor uint64) ([]string, uint64, error) { return c.store.Queues(ctx, cursor) }
		for member, err := range paging.Names(c.prefix+p.After, scan) {
			name, known := queuestore.Registered(member)
			bare, ours := strings.CutPrefix(name.Name, c.prefix)
			name.Name = bare
			cursor := strings.TrimPrefix(member, c.prefix)
			if (err != nil || known && ours && bare != "") && !yield(wakebelltype.QueueName{Keys: name, Cursor: cursor}, err) {
				return
			}
		}
	})
}

// Stats returns the statistics of a queue.
func (c *Client) Stats(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueStats, error) {
	q, err := c.queue(name)
	if err != nil {
		return wakebelltype.QueueStats{}, err
	}
	return q.Stats(ctx)
}

// messagesPage is how many messages a listing reads at once.
const messagesPage = 100

// Messages yields the messages that wait, in the order in which they will be
// claimed; with running those that a consumer holds or that wait for their next
// attempt, by deadline. It reads pages while the loop runs. A message that waits
// all the time is yielded once, also by a listing that continues after a Cursor.
// The deadline of a running message changes with each heartbeat: it may be yielded
// twice or not at all. An error is yielded last.
func (c *Client) Messages(ctx context.Context, name wakebelltype.QueueKeys, running bool, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueMessage, error] {
	return paging.All(p, func(after string, limit int) ([]wakebelltype.QueueMessage, string, error) {
		q, err := c.queue(name)
		if err != nil {
			return nil, "", err
		}
		return q.MessagesAfter(ctx, running, after, min(cmp.Or(limit, messagesPage), messagesPage))
	})
}

// Purge deletes the messages that wait, and returns how many there were. It frees
// the deduplication keys that FreeKeyOnFailure stored. With running it also deletes
// the messages that consumers hold: the contexts of their handlers end with
// wakebell.ErrLeaseLost. After an error it may have deleted some.
func (c *Client) Purge(ctx context.Context, name wakebelltype.QueueKeys, running bool) (int64, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	n, err := q.Purge(ctx, running)
	what := "waiting"
	if running {
		what = "waiting and running"
	}
	c.record(ctx, wakebelltype.AuditQueuePurge, q, audit.Result{Count: n, Detail: what, Err: err})
	return n, err
}

// record writes the entry of an operation on a queue.
func (c *Client) record(ctx context.Context, operation wakebelltype.AuditOperation, q *queuestore.Queue, r audit.Result) {
	c.store.Audit.Record(ctx, operation, q.Name(), r)
}

// PurgeKept deletes the payloads that are kept of completed and failed messages,
// and returns how many there were.
func (c *Client) PurgeKept(ctx context.Context, name wakebelltype.QueueKeys) (int64, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	n, err := q.PurgeKept(ctx)
	c.record(ctx, wakebelltype.AuditQueuePurge, q, audit.Result{Count: n, Detail: "kept", Err: err})
	return n, err
}

// drainLook is how often Drain reads the counts.
const drainLook = 100 * time.Millisecond

// Drain waits until no message waits in the queue and no consumer holds one. Stop
// the publishers first, and keep the consumers running. It returns the last counts;
// when ctx ends first, with the cause of that.
func Drain(ctx context.Context, of Operator, name wakebelltype.QueueKeys) (left wakebelltype.QueueStats, err error) {
	for {
		st, err := of.Stats(ctx, name)
		switch {
		case ctx.Err() != nil && err != nil:
			return left, context.Cause(ctx)
		case err != nil:
			return left, err
		case st.Pending+st.Processing == 0:
			return st, nil
		}
		left = st
		select {
		case <-ctx.Done():
			return left, context.Cause(ctx)
		case <-time.After(drainLook):
		}
	}
}
