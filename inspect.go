package wakebell

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Info is what Redis knows of a timer.
type Info struct {
	ID    string
	Topic string // with its prefix
	State State

	// Due is when it can be delivered next: the instant it was scheduled for,
	// that of its next attempt, or, while it runs, the end of its lease.
	Due time.Time
	// Activation is the instant it was scheduled for, over all retries.
	Activation time.Time

	Attempts  int    // deliveries so far
	Failures  int    // those that ended in an error
	LastError string // of the last failure
}

// State is where a timer stands.
type State string

const (
	// StatePending waits for its instant.
	StatePending State = "pending"
	// StateRetrying waits for its next attempt.
	StateRetrying State = "retrying"
	// StateRunning is with a handler.
	StateRunning State = "running"
	// StateNever has an infinite instant, which no Wakebell client writes.
	StateNever State = "never"
)

// Content is what travels in a timer.
type Content struct {
	CorrelationID string
	ContentType   string
	ReplyTo       string
	Headers       Headers
	Body          []byte
}

// Get reads a timer with its content; ErrNotFound when there is none, ErrTooLarge
// when its payload has more bytes than are read.
func (c *Client) Get(ctx context.Context, topic, id string) (Info, Content, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Info{}, Content{}, err
	}
	t, err := c.store.Get(ctx, full, id)
	if err != nil {
		return Info{}, Content{}, err
	}
	return infoOf(full, t), content(t.Payload, t.ID), nil
}

// Filter chooses timers; the zero value takes all.
type Filter struct {
	DueBefore time.Time // only those due before it
	Running   bool      // only those that a handler has
}

// List yields the timers of a topic in the order of Due, then ID. It reads
// them in pages as the loop goes on, so what changes meanwhile may be seen or
// not. An error is yielded last.
func (c *Client) List(ctx context.Context, topic string, f Filter) iter.Seq2[Info, error] {
	return paging.All(func(after timers.Cursor) ([]Info, timers.Cursor, error) {
		full, err := c.fullName(topic)
		if err != nil {
			return nil, after, err
		}
		timers, next, err := c.store.List(ctx, full, timers.Filter{DueBefore: f.DueBefore, Leased: f.Running, After: after})
		infos := make([]Info, len(timers))
		for i, t := range timers {
			infos[i] = infoOf(full, t)
		}
		return infos, next, err
	})
}

// Counts are the sizes of a topic.
type Counts = timers.Counts

// Count counts the timers and the dead letters of a topic.
func (c *Client) Count(ctx context.Context, topic string) (Counts, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Counts{}, err
	}
	return c.store.Count(ctx, full)
}

// Stats are a topic in numbers.
type Stats = timers.Stats

// Stats counts the timers of a topic by where they stand, and tells since when
// the first that is due has been and whether the topic is paused. Its cost does
// not grow with the topic; where more than 1,000 timers are leased or were
// tried, some counts are estimates, which it says.
func (c *Client) Stats(ctx context.Context, topic string) (Stats, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Stats{}, err
	}
	return c.store.Stats(ctx, full)
}

// Overview is what there is to see of a topic at a glance: its numbers, and
// what is ordered of it.
type Overview = timers.Overview

// Overview looks at topics, in their order, 100 of them in a round trip. What
// cannot be read of one is in its Err, and spoils no other; the error of the
// call is ctx's, or one of a Redis that answers for none of a hundred.
func (c *Client) Overview(ctx context.Context, topics ...string) ([]Overview, error) {
	full := make([]string, len(topics))
	for i, topic := range topics {
		var err error
		if full[i], err = c.fullName(topic); err != nil {
			return nil, err
		}
	}
	return c.store.Overview(ctx, full...)
}

// Topics yields the full names of the topics, in no order, each once. They are
// those on which Wakebell scheduled or which a node handled; discover also
// scans the whole of Redis for those that only Python peers know, which takes
// as long as Redis is large. An error is yielded last.
func (c *Client) Topics(ctx context.Context, discover bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		seen := map[string]bool{}
		sources := []func(context.Context, uint64) ([]string, uint64, error){c.store.Topics}
		if discover {
			sources = append(sources, c.store.DiscoverTopics)
		}
		for _, source := range sources {
			names := paging.All(func(cursor uint64) ([]string, uint64, error) { return source(ctx, cursor) })
			for name, err := range names {
				if err == nil && seen[name] {
					continue
				}
				seen[name] = true
				if !yield(name, err) || err != nil {
					return
				}
			}
		}
	}
}

func infoOf(topic string, t timers.Timer) Info {
	info := Info{
		ID: t.ID, Topic: topic, State: StatePending, Due: t.Due, Activation: t.Activation,
		Attempts: t.Claims, Failures: t.Failures, LastError: t.LastError,
	}
	switch {
	case t.NeverDue:
		info.State = StateNever
	case t.Running:
		info.State = StateRunning
	case t.Claims > 0:
		info.State = StateRetrying
	}
	return info
}

// content takes a payload apart. One that contradicts itself is shown whole.
func content(payload []byte, id string) Content {
	env, _ := envelope.Decode(payload)
	return Content{
		CorrelationID: env.CorrelationOr(id),
		ContentType:   env.ContentType,
		ReplyTo:       env.ReplyTo,
		Headers:       slices.Clip(Headers(env.Headers)),
		Body:          env.Body,
	}
}
