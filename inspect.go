package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/progress"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Info is the state of a timer in Redis.
type Info struct {
	ID    string `json:"id"`
	Topic string `json:"topic"` // with its prefix
	State State  `json:"state"`

	// Due is when the timer can be delivered next: the instant for which it was
	// scheduled, the instant of its next attempt, or, while it runs, the expiry
	// of its lease.
	Due time.Time `json:"due,omitzero"`
	// Activation is the instant for which the timer was scheduled; retries do
	// not change it.
	Activation time.Time `json:"activation,omitzero"`

	Attempts  int    `json:"attempts"`   // deliveries so far
	Failures  int    `json:"failures"`   // deliveries that ended in an error
	LastError string `json:"last_error"` // of the last failure

	Key string `json:"key"` // as the option Key set it; empty: none

	// Cursor continues a listing after this timer; see Page. Only List sets it.
	Cursor string `json:"cursor"`
}

// IsDue reports whether the timer's instant has come at now, and a handler can take it.
func (i Info) IsDue(now time.Time) bool {
	return (i.State == StatePending || i.State == StateRetrying) && !i.Due.After(now)
}

// State is the state of a timer.
type State string

const (
	// StatePending means that the timer waits for its instant or, when that has come, for
	// a handler; see Info.IsDue.
	StatePending State = "pending"
	// StateRetrying means that the timer waits for its next attempt, as StatePending.
	StateRetrying State = "retrying"
	// StateParked means that the timer is due and waits until its key is free; see
	// PerKey. List has parked timers after all others.
	StateParked State = "parked"
	// StateRunning means that a handler holds the timer, or that it waits on a node for one, as
	// behind others of its key run (KeyRun).
	StateRunning State = "running"
	// StateNever means that the timer has an infinite instant. Other programs
	// can write such timers; Wakebell does not.
	StateNever State = "never"
)

// Content is the body of a timer, still encoded, with its headers.
type Content struct {
	CorrelationID string  `json:"correlation_id"`
	ContentType   string  `json:"content_type"`
	ReplyTo       string  `json:"reply_to"`
	Headers       Headers `json:"headers"`
	Body          []byte  `json:"body"`
}

// Get returns a timer with its content. Errors include ErrNotFound, and ErrTooLarge if
// the payload exceeds the limit for reading: then Info is set, and Content is empty. Only
// nodes of an earlier version, asked over the network, answer that without Info.
func (c *Client) Get(ctx context.Context, topic, id string) (Info, Content, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Info{}, Content{}, err
	}
	t, err := c.reads.Get(ctx, full, id)
	switch {
	case errors.Is(err, ErrTooLarge):
		return infoOf(full, t), Content{}, err
	case err != nil:
		return Info{}, Content{}, err
	}
	return infoOf(full, t), content(t.Payload, t.ID), nil
}

// Filter selects timers; the zero value selects all.
type Filter struct {
	DueBefore time.Time // only timers that are due before it
	Running   bool      // only those in StateRunning
}

// List returns an iterator over the timers of a topic, sorted by Due, then ID. It
// reads them in pages. A timer that is not changed is yielded once, also by a
// listing that continues after a Cursor; one whose Due changes meanwhile may be
// yielded twice or not at all. After an error, which it yields with a zero Info, it
// ends.
func (c *Client) List(ctx context.Context, topic string, f Filter, p wakebelltype.Page) iter.Seq2[Info, error] {
	return paging.All(p, func(after string, limit int) ([]Info, string, error) {
		full, err := c.fullName(topic)
		if err != nil {
			return nil, "", err
		}
		timers, next, err := c.reads.List(ctx, full, timers.Filter{
			DueBefore: f.DueBefore, Leased: f.Running, After: timers.Cursor(after), Limit: limit,
		})
		infos := make([]Info, len(timers))
		for i, t := range timers {
			infos[i] = infoOf(full, t)
		}
		return infos, string(next), err
	})
}

// Stats counts the timers of a topic by state, and reports since when the first
// due timer waits and whether the topic is paused. Its cost does not grow with
// the number of timers: if more than 1,000 timers are leased or were attempted,
// some counts are estimates, and Estimated is set.
func (c *Client) Stats(ctx context.Context, topic string) (wakebelltype.Stats, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Stats{}, err
	}
	return c.reads.Stats(ctx, full)
}

// CountDue counts the timers of a topic whose instants, or next attempts, are in each of n
// steps from an instant on, 1 to 1,500 steps of at least a millisecond: what is to be done
// when. A timer that runs counts when its lease expires; one that is due and waits for its
// key does not count. The cost does not grow with the number of timers.
func (c *Client) CountDue(ctx context.Context, topic string, from time.Time, step time.Duration, n int) ([]int64, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return nil, err
	}
	return c.reads.CountDue(ctx, full, from, step, n)
}

// Overview returns the overviews of topics in the same order, with one round trip
// for each 100 topics, or two on a Cluster, after one that asks the time. An error that concerns one topic is in the Err of its
// Overview. The call returns an error if ctx ends, or if Redis answers for none
// of the topics of a round trip.
func (c *Client) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	full := make([]string, len(topics))
	for i, topic := range topics {
		var err error
		if full[i], err = c.fullName(topic); err != nil {
			return nil, err
		}
	}
	return c.reads.Overview(ctx, full...)
}

// Topics returns an iterator over the full names of the topics that Wakebell
// scheduled on or handled, sorted, each once. Page.After is a name. With discover,
// it also scans the whole keyspace for topics that only Python peers use, and adds them to
// the list; the duration grows with the number of keys in Redis. It reads all names before it
// yields the first. An error comes last, with an empty name. If servers of a Cluster do
// not answer, the names of the others come before it: if the server with the list of
// topics is among them, they are looked for as with discover.
func (c *Client) Topics(ctx context.Context, discover bool, p wakebelltype.Page) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		scan, discovers := c.discover(ctx), discover
		registered := func(cursor uint64) ([]string, uint64, error) {
			names, next, err := c.reads.Topics(ctx, cursor)
			discovers = discovers || errors.Is(err, ErrUnavailable) && c.store.Timers().OnCluster() && ctx.Err() == nil
			return names, next, err
		}
		others := func(cursor uint64) ([]string, uint64, error) {
			if !discovers {
				return nil, 0, nil
			}
			names, next, err := scan(cursor)
			if discover && err == nil && len(names) > 0 {
				if err := c.store.Enlist(ctx, names); err != nil {
					c.store.Timers().Logger.WarnContext(ctx, "discovered topics are not listed without a scan", "err", err)
				}
			}
			return names, next, err
		}
		for name, err := range paging.Limited(p, paging.Names(p.After, registered, others)) {
			if !yield(name, err) {
				return
			}
		}
	}
}

// discover scans all keys for topics, and reports how far it is.
func (c *Client) discover(ctx context.Context) paging.Scan {
	report, keys, scanned := progress.Of(ctx), int64(0), int64(0)
	return func(cursor uint64) ([]string, uint64, error) {
		if report != nil && scanned == 0 {
			keys, _ = c.store.Timers().Size(ctx) // the scan returns the error
		}
		names, next, err := c.store.DiscoverTopics(ctx, cursor)
		if report != nil {
			scanned += timers.DiscoverPage
			report(min(scanned, keys), keys)
		}
		return names, next, err
	}
}

func infoOf(topic string, t timers.Timer) Info {
	info := Info{
		ID: t.ID, Topic: topic, State: StatePending, Due: t.Due, Activation: t.Activation,
		Attempts: t.Claims, Failures: t.Failures, LastError: t.LastError, Cursor: string(t.Cursor), Key: t.Key,
	}
	switch {
	case t.NeverDue:
		info.State = StateNever
	case t.Running:
		info.State = StateRunning
	case t.Parked:
		info.State = StateParked
	case t.Claims > 0:
		info.State = StateRetrying
	}
	return info
}

// content decodes a payload. If it is malformed, Body is the whole payload.
func content(payload []byte, id string) Content {
	env, _ := envelope.Decode(payload)
	return Content{
		CorrelationID: cmp.Or(env.CorrelationID, id),
		ContentType:   env.ContentType,
		ReplyTo:       env.ReplyTo,
		Headers:       slices.Clip(Headers(env.Headers)),
		Body:          env.Body,
	}
}

// Stored is a timer of a topic in Redis.
type Stored[T any] struct {
	Info
	Body T // Content.Body, decoded

	// Content holds the headers and the body as they are stored.
	Content Content
}

// Get returns a timer of the topic with its body decoded. If the body cannot be
// decoded into T, Get returns the timer with a zero Body, and an error that wraps
// ErrUnreadable. Other errors are those of Client.Get, such as ErrNotFound.
func (t Topic[T]) Get(ctx context.Context, c TimerClient, id string) (Stored[T], error) {
	if c == nil {
		return Stored[T]{}, argument.Invalid("client", "nil")
	}
	info, content, err := c.Get(ctx, t.name, id)
	stored := Stored[T]{Info: info, Content: content}
	if err != nil {
		return stored, err
	}
	plain, err := decodedContent(ctx, c, payload.Encoded{
		Topic: t.name, ID: id, Headers: content.Headers, Body: content.Body, ContentType: content.ContentType,
	})
	if err == nil {
		stored.Body, err = t.codec.Decode(plain.Body, plain.ContentType)
	}
	if err != nil {
		return stored, fmt.Errorf("get %s on %s: %w: %w", quoted(id), quoted(t.name), ErrUnreadable, err)
	}
	return stored, nil
}

// decodedContent decodes a body with the Payloads of a client.
func decodedContent(ctx context.Context, c TimerClient, e payload.Encoded) (payload.Decoded, error) {
	var chain *payload.Chain
	if with, ok := c.(interface{ Payloads() *payload.Chain }); ok {
		chain = with.Payloads()
	}
	if chain == nil && payload.Marked(e.Headers, nil) {
		return payload.Decoded{}, notOpened(e.Headers, e.Body)
	}
	return chain.Decode(ctx, e)
}

// notOpened is the error for an encoded body where Payloads is not set.
func notOpened(headers Headers, body []byte) error {
	return fmt.Errorf("%w: the body is encoded (%s): set Payloads", payload.ErrUnknownCodec, payload.Description(headers, body))
}

// Tail returns an iterator over the events of a topic on all nodes, as they
// happen, until the loop or ctx ends. After an error, which it yields with a zero
// Event, it ends.
//
// Events may be missed. A node sends at most 20,000 events of a topic per second,
// and reports how many it dropped. Nodes send events only while at least one Tail
// runs; a node that starts handling the topic keeps its first 20 events for up to
// 7 s, until it knows whether one does. It may send those of the second before the
// loop began, too. Python workers send no events.
//
// Errors are ErrUnavailable if Redis does not answer at the start (later outages
// are waited out), ErrChannelDenied, and the error of ctx.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error] {
	return func(yield func(wakebelltype.Event, error) bool) {
		full, err := c.fullName(topic)
		if err == nil {
			err = c.store.Tail(ctx, full, func(e wakebelltype.Event) bool { return yield(e, nil) })
		}
		if err != nil {
			yield(wakebelltype.Event{}, err)
		}
	}
}

// AskNodes asks the nodes that handle topics, up to 10,000, for their states, and returns
// the answers when all are there or after 1.5 s, which it always waits on a Cluster. The
// topics have the names that were given. A topic without an answer has no node, or only
// Python workers, which do not answer, or its node is too busy. It costs one subscription
// and a message for each topic and answer. Errors are those of Tail.
// If Redis denies the channels of some topics to its user, the others are asked, and the error
// is a *wakebelltype.UnaskedError.
func (c *Client) AskNodes(ctx context.Context, topics ...string) ([]wakebelltype.NodeAnswer, error) {
	if len(topics) > maxAsked {
		return nil, argument.Invalid("topics", "%d, want at most %d", len(topics), maxAsked)
	}
	full, given := make([]string, len(topics)), map[string]string{}
	for i, topic := range topics {
		var err error
		if full[i], err = c.fullName(topic); err != nil {
			return nil, err
		}
		given[full[i]] = topic
	}
	answers, err := c.store.AskNodes(ctx, full)
	for i := range answers {
		answers[i].Topic = given[answers[i].Topic]
	}
	if unasked, ok := errors.AsType[*wakebelltype.UnaskedError](err); ok {
		for i, name := range unasked.Topics {
			unasked.Topics[i] = given[name]
		}
	}
	return answers, err
}

// maxAsked bounds the topics of AskNodes.
const maxAsked = 10_000
