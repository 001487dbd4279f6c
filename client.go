package wakebell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/clientstore"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Keys are the base names of the Redis keys; see docs/keys.md. The zero value
// is what faststream-redis-timers uses by default.
type Keys = timers.Keys

// DefaultPayloadLimit is how large a body may be with its headers.
const DefaultPayloadLimit = clientstore.DefaultPayloadLimit

// ClientConfig configures a Client; the zero value works.
type ClientConfig struct {
	// Keys are the base names of the Redis keys.
	Keys Keys

	// Prefix is put before the name of every topic, as a router of
	// faststream-redis-timers does.
	Prefix string

	// PayloadLimit bounds a body with its headers, in bytes; 0 means
	// DefaultPayloadLimit, at most 512 MiB. What other programs wrote is read up to
	// 16 MiB, or up to PayloadLimit if that is more; a timer above it becomes a
	// dead letter without its payload. So a limit over 16 MiB has to be that of
	// the nodes as well.
	PayloadLimit int

	// Celery makes Schedules.RunNow and Backfill send Celery messages for the
	// entries that Python processes stored, as recurring.SchedulerConfig.Celery does.
	Celery bool

	// RetryFor is for how long a call is made again, with growing, jittered
	// delays from 25 ms to 1 s, while Redis is unavailable. 0, the default:
	// until the deadline of its context, or for 2 s where that has none. Above 0
	// it bounds both. Negative: each call is made once. It counts from the
	// beginning of the call, and what go-redis retries by itself is part of it.
	// A call is not made again if it would outlast RetryFor by taking as long as
	// the last time; a server that does not answer at all holds up even a call
	// that is made once for the timeouts of the go-redis client.
	RetryFor time.Duration

	// Logger gets what no caller can be told; nil means slog.Default().
	Logger *slog.Logger
}

// queues is the configuration of the client of the queues.
func (c ClientConfig) queues() queue.Config {
	return queue.Config{Prefix: c.Prefix, HashTag: c.Keys.HashTag, PayloadLimit: c.PayloadLimit, RetryFor: c.RetryFor}
}

// Client schedules, cancels and inspects timers. It starts nothing and needs
// no Close; it is safe for concurrent use.
//
// Every call may be made again when its outcome is unknown, and is, within
// ClientConfig.RetryFor: what it writes is written once, or in the same way
// again. What a second call answers is what it found, which the first may have
// left: Cancel finds nothing, Schedule finds the timer, RunNow and Reschedule of
// a timer that was due at once may find it handled, and gone. Redrive and
// DeleteDead answer and count as the first did.
type Client struct {
	store  *timers.Timers
	prefix string
	limit  int

	schedules *recurring.Schedules
	queues    *queue.Client
}

// NewClient makes a Client on rdb, which the caller owns and closes. It does
// not speak to Redis yet.
func NewClient(rdb redis.UniversalClient, cfg ClientConfig) (*Client, error) {
	return newClient(rdb, cfg, nil)
}

// newClient also takes the time zone of crontabs that name none.
func newClient(rdb redis.UniversalClient, cfg ClientConfig, zone *time.Location) (*Client, error) {
	common := clientstore.Config{
		Keys: cfg.Keys, PayloadLimit: cfg.PayloadLimit, RetryFor: cfg.RetryFor, Logger: cfg.Logger,
	}.WithDefaults()
	store, err := clientstore.Open(rdb, common)
	if err != nil {
		return nil, err
	}
	schedules, err := recurring.New(rdb, recurring.Config{
		Keys: cfg.Keys, Prefix: cfg.Prefix, PayloadLimit: cfg.PayloadLimit, Celery: cfg.Celery,
		Zone: zone, RetryFor: cfg.RetryFor, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	queues, err := queue.NewClient(rdb, cfg.queues())
	if err != nil {
		return nil, err
	}
	return &Client{
		store: store, prefix: cfg.Prefix, limit: common.PayloadLimit, schedules: schedules, queues: queues,
	}, nil
}

// Scheduled tells what a draft became: Due by Redis's clock, Outcome whether the
// timer is new or what was found under its id, Found when that was due.
type Scheduled = timers.Scheduled

// Outcome says what scheduling found and did.
type Outcome = timers.Outcome

const (
	// Created: the id was free.
	Created = timers.Created
	// Replaced: a pending timer was replaced.
	Replaced = timers.Replaced
	// Superseded: a timer was replaced while its handler ran.
	Superseded = timers.Superseded
	// KeptPending: a pending timer was kept.
	KeptPending = timers.KeptPending
	// KeptRunning: a timer whose handler runs was kept.
	KeptRunning = timers.KeptRunning
	// KeptEarlier: a pending timer that is due as early was kept by PolicyEarliest.
	KeptEarlier = timers.KeptEarlier
	// Moved: a pending timer was moved by Debounce or Reschedule.
	Moved = timers.Moved
	// AlreadyDone: a timer that was scheduled with Once is gone; nothing was
	// written.
	AlreadyDone = timers.AlreadyDone
)

// Schedule stores drafts, of one topic or of several. All are checked before
// the first is written; an error names the draft by its index. Those of one
// topic are stored in one atomic round trip, up to 500 of them and 1 MiB, more
// in several: after an error part of a larger batch may be stored, and the
// same call may be made again. With ErrTooFewReplicas all of it is stored, and
// what is returned beside it is true.
func (c *Client) Schedule(ctx context.Context, drafts ...Draft) ([]Scheduled, error) {
	return c.schedule(ctx, nil, drafts)
}

// schedule stores drafts, with an idempotency key or without.
func (c *Client) schedule(ctx context.Context, key *timers.Key, drafts []Draft) ([]Scheduled, error) {
	batches, err := c.batches(drafts)
	if err != nil {
		return nil, err
	}
	if len(batches) == 1 { // of one topic: the answers are in order as they are
		stored, err := c.store.ScheduleKeyed(ctx, batches[0].topic, key, batches[0].entries...)
		if err != nil && !errors.Is(err, ErrTooFewReplicas) {
			return nil, err
		}
		return stored, err
	}
	out := make([]Scheduled, len(drafts))
	var short error
	for _, b := range batches {
		stored, err := c.store.ScheduleKeyed(ctx, b.topic, key, b.entries...)
		switch {
		case errors.Is(err, ErrTooFewReplicas):
			short = errors.Join(short, err)
		case err != nil:
			return nil, err
		}
		for j, s := range stored {
			out[b.indexes[j]] = s
		}
	}
	return out, short
}

// batch is the drafts of one topic, with their indexes in the call.
type batch struct {
	topic   string
	entries []timers.Entry
	indexes []int
}

// newBatch has room for n drafts.
func newBatch(topic string, n int) *batch {
	return &batch{
		topic: topic, entries: make([]timers.Entry, 0, n), indexes: make([]int, 0, n),
	}
}

// batches checks drafts and sorts them by topic.
func (c *Client) batches(drafts []Draft) ([]*batch, error) {
	var batches []*batch
	byTopic := map[string]*batch{}
	for i := range drafts {
		d := &drafts[i]
		b := byTopic[d.topic]
		if b == nil {
			topic, err := c.fullName(d.topic)
			if err != nil {
				return nil, fmt.Errorf("timer %d: %w", i, err)
			}
			room := 1
			if i == 0 { // most often all are of one topic
				room = len(drafts)
			}
			b = newBatch(topic, room)
			byTopic[d.topic] = b
			batches = append(batches, b)
		}
		entry, err := d.entry(c.limit)
		if err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
		b.entries, b.indexes = append(b.entries, entry), append(b.indexes, i)
	}
	for _, b := range batches {
		if i := timers.Twice(b.entries); i >= 0 {
			return nil, fmt.Errorf("timer %d: %w", b.indexes[i], invalid("ID", "%s is given twice", quoted(b.entries[i].ID)))
		}
	}
	return batches, nil
}

// Queues returns the client of the queues, with the Client's prefix, limit and
// retries.
func (c *Client) Queues() *queue.Client {
	if c == nil {
		return nil
	}
	return c.queues
}

// Prefix is what the Client puts before the name of every topic.
func (c *Client) Prefix() string { return c.prefix }

// fullName puts the prefix before the name of a topic, which must not be
// empty.
func (c *Client) fullName(topic string) (string, error) {
	if c == nil || c.store == nil {
		return "", invalid("client", "nil or zero; use NewClient")
	}
	full := c.prefix + topic
	switch {
	case topic == "":
		return "", invalid("topic", "empty")
	case len(full) > redisops.MaxName:
		return "", invalid("topic", "%d bytes, at most %d", len(full), redisops.MaxName)
	}
	return full, nil
}

// Presence says what a timer was doing.
type Presence = timers.Presence

const (
	// Absent: there was no such timer.
	Absent = timers.Absent
	// Pending: it waited to become due, or to be retried.
	Pending = timers.Pending
	// Running: a handler had it.
	Running = timers.Running
)

// Cancel removes timers of a topic and says, in the order of ids, what each
// was doing. The contexts of handlers that run on them end with ErrCancelled.
func (c *Client) Cancel(ctx context.Context, topic string, ids ...string) ([]Presence, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return nil, err
	}
	return c.store.Cancel(ctx, full, ids...)
}

// CancelAll removes all timers of a topic, running ones included, and returns
// how many there were. Dead letters stay.
func (c *Client) CancelAll(ctx context.Context, topic string) (int64, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return 0, err
	}
	return c.store.CancelAll(ctx, full)
}

// Forget removes all that Redis keeps of a topic: its timers, its dead letters
// and its name in the list of topics. It is for topics that are no longer used.
func (c *Client) Forget(ctx context.Context, topic string) error {
	full, err := c.fullName(topic)
	if err != nil {
		return err
	}
	return c.store.Forget(ctx, full)
}

// Schedules returns the recurring schedules of the Client's Redis, with its keys,
// prefix and limit.
func (c *Client) Schedules() *recurring.Schedules { return c.schedules }
