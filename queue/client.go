package queue

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/audit"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ErrFull says that as many messages wait as PendingCap allows; the message was not
// published.
var ErrFull = wakebelltype.ErrQueueFull

const (
	roomFirst = 5 * time.Millisecond // until a full queue is tried again, doubled
	roomLast  = 250 * time.Millisecond
)

// Client publishes to queues, inspects them and redrives their dead letters. It
// starts nothing and needs no Close; it is safe for concurrent use. Every call may
// be made again when its outcome is unknown.
type Client struct {
	store  *timers.Timers
	reads  *timers.Timers // of listings and statistics: store, or that of ReadFrom
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
	Throughput(ctx context.Context, name wakebelltype.QueueKeys, since time.Duration) (wakebelltype.Throughput, error)
	History(ctx context.Context, name wakebelltype.QueueKeys, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error]
	Purge(ctx context.Context, name wakebelltype.QueueKeys, running bool) (int64, error)
	PurgeKept(ctx context.Context, name wakebelltype.QueueKeys) (int64, error)
	Remove(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueRemoval, error)

	DeadLetters(ctx context.Context, name wakebelltype.QueueKeys, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueDeadLetter, error]
	DeadLetter(ctx context.Context, name wakebelltype.QueueKeys, entry string) (wakebelltype.QueueDeadLetter, error)
	RedriveDeadLetter(ctx context.Context, name wakebelltype.QueueKeys, l wakebelltype.QueueDeadLetter, o RedriveOptions) (wakebelltype.QueueRedriveOutcome, string, error)
	DeleteDeadLetters(ctx context.Context, name wakebelltype.QueueKeys, letters ...wakebelltype.QueueDeadLetter) (int, error)
}

var (
	_ Publisher = (*Client)(nil)
	_ Operator  = (*Client)(nil)
)

// NewClient makes a client of queues on the Redis of conn. It does not call Redis yet.
// Errors wrap wakebell.ErrInvalid.
func NewClient(conn *connection.Connection) (*Client, error) {
	on, err := opened.Of((*opened.Handle)(conn))
	if err != nil {
		return nil, err
	}
	store, err := on.Timers()
	if err != nil {
		return nil, err
	}
	reads, err := on.Reader(store)
	if err != nil {
		return nil, err
	}
	return &Client{store: store, reads: reads, prefix: on.Prefix, limit: on.PayloadLimit, edge: on.Edge}, nil
}

// queue is the store of a queue under its full name.
func (c *Client) queue(name wakebelltype.QueueKeys) (*queuestore.Queue, error) {
	if c == nil || c.store == nil {
		return nil, argument.Invalid("client", "nil or zero; use NewClient")
	}
	return c.queueOn(c.store, name)
}

// listed is the store of a queue for listings and statistics.
func (c *Client) listed(ctx context.Context, name wakebelltype.QueueKeys) (*queuestore.Queue, error) {
	if c == nil || c.reads == nil {
		return nil, argument.Invalid("client", "nil or zero; use NewClient")
	}
	if opened.IsByMasters(ctx) {
		return c.queueOn(c.store, name)
	}
	return c.queueOn(c.reads, name)
}

func (c *Client) queueOn(store *timers.Timers, name wakebelltype.QueueKeys) (*queuestore.Queue, error) {
	if name.Name == "" {
		return nil, argument.Invalid("queue", "empty")
	}
	name.Name = c.prefix + name.Name
	return queuestore.New(store, name)
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
		scan := func(cursor uint64) ([]string, uint64, error) { return c.reads.Queues(ctx, cursor) }
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
	q, err := c.listed(ctx, name)
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
		q, err := c.listed(ctx, name)
		if err != nil {
			return nil, "", err
		}
		return q.MessagesAfter(ctx, running, after, min(cmp.Or(limit, messagesPage), messagesPage))
	})
}

// Purge deletes the messages that wait, and returns how many there were. Their
// deduplication keys are free, but those that Python processes wrote. With running it also deletes
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

// PurgeKept deletes what is kept of handled messages: the payloads of completed and
// failed ones, of which it returns the number, the counts and the history.
func (c *Client) PurgeKept(ctx context.Context, name wakebelltype.QueueKeys) (int64, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	n, err := q.PurgeKept(ctx)
	if err == nil {
		err = q.PurgeRecords(ctx)
	}
	c.record(ctx, wakebelltype.AuditQueuePurge, q, audit.Result{Count: n, Detail: "kept", Err: err})
	return n, err
}

// Remove removes the name of a queue from the list of queues, unless the queue has
// messages, dead letters or kept payloads, or a node handles it. It frees the
// deduplication keys of the queue, for which it scans all keys of Redis. Consumers in Python are
// not seen: a Client that publishes again lists the queue again within a minute. Errors
// include wakebell.ErrDenied, if the Redis user may not count subscriptions.
func (c *Client) Remove(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueRemoval, error) {
	q, err := c.queue(name)
	if err != nil {
		return wakebelltype.QueueRemoval{}, err
	}
	r, err := q.Unregister(ctx)
	if r.Existed && r.Use == "" {
		c.record(ctx, wakebelltype.AuditQueueRemove, q, audit.One("", err))
	}
	return r, err
}

// drainLook is how often Drain reads the counts.
const drainLook = 100 * time.Millisecond

// Drain waits until no message waits in the queue and no consumer holds one. Stop
// the publishers first, and keep the consumers running. It returns the last counts;
// when ctx ends first, with the cause of that.
func Drain(ctx context.Context, of Operator, name wakebelltype.QueueKeys) (left wakebelltype.QueueStats, err error) {
	looking := opened.ByMasters(ctx)
	for {
		st, err := of.Stats(looking, name)
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
