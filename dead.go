package wakebell

import (
	"context"
	"iter"
	"time"

	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DeadLetter is a timer that was rejected or failed too often. It is no longer
// delivered, unless Redrive makes it a timer again.
type DeadLetter struct {
	Entry      string    `json:"entry"`               // id of the dead letter; entries sort by age
	ID         string    `json:"id"`                  // id of the timer
	Topic      string    `json:"topic"`               // with its prefix
	Reason     string    `json:"reason"`              // error of the last failure, or the rejection
	Attempts   int       `json:"attempts"`            // deliveries
	Failures   int       `json:"failures"`            // deliveries that ended in an error
	Activation time.Time `json:"activation,omitzero"` // instant for which the timer was scheduled
	Died       time.Time `json:"died,omitzero"`       // when it was dead-lettered, by Redis's clock
	Content    Content   `json:"content"`
	Key        string    `json:"key"` // of the timer, which a redrive restores; empty: none

	// Cursor continues a listing after this dead letter: its Entry; see Page.
	Cursor string `json:"cursor"`
}

// DeadLetters returns an iterator over the dead letters of a topic that the
// filter selects, oldest first. It reads them in pages. A dead letter that is not
// deleted or redriven meanwhile is yielded once, also by a listing that continues
// after a Cursor. After an error, which it yields with a zero DeadLetter, it ends.
func (c *Client) DeadLetters(ctx context.Context, topic string, f wakebelltype.DeadFilter, p wakebelltype.Page) iter.Seq2[DeadLetter, error] {
	return paging.All(p, func(after string, limit int) ([]DeadLetter, string, error) {
		full, err := c.fullName(topic)
		if err != nil {
			return nil, "", err
		}
		letters, next, err := c.reads.DeadLetters(ctx, full, f, after, limit)
		dead := make([]DeadLetter, len(letters))
		for i, d := range letters {
			dead[i] = deadLetterOf(full, d)
		}
		return dead, next, err
	})
}

// DeadLetter returns a dead letter by its Entry, or ErrNotFound.
func (c *Client) DeadLetter(ctx context.Context, topic, entry string) (DeadLetter, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return DeadLetter{}, err
	}
	d, err := c.reads.DeadLetter(ctx, full, entry)
	if err != nil {
		return DeadLetter{}, err
	}
	return deadLetterOf(full, d), nil
}

func deadLetterOf(topic string, d timers.DeadLetter) DeadLetter {
	return DeadLetter{
		Entry: d.Entry, ID: d.ID, Topic: topic, Reason: d.Reason,
		Attempts: d.Claims, Failures: d.Failures, Activation: d.Activation, Died: d.At, Key: d.Key,
		Content: content(d.Payload, d.ID), Cursor: d.Entry,
	}
}

// LastDead returns the newest n dead letters of a topic, the oldest of them
// first; n is between 1 and 1,000.
func (c *Client) LastDead(ctx context.Context, topic string, n int) ([]DeadLetter, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return nil, err
	}
	letters, err := c.reads.LastDead(ctx, full, n)
	if err != nil {
		return nil, err
	}
	dead := make([]DeadLetter, len(letters))
	for i, d := range letters {
		dead[i] = deadLetterOf(full, d)
	}
	return dead, nil
}

// onDead adapts Config.OnDead to the pollers; nil if it is not set.
func (s *System) onDead() func(context.Context, observe.DeadTimer) {
	if s.cfg.OnDead == nil {
		return nil
	}
	return func(ctx context.Context, d observe.DeadTimer) {
		body := content(d.Payload, d.ID)
		if s.queueNamed(d.Topic) != nil { // messages of queues have no envelope
			body = Content{Body: d.Payload, CorrelationID: d.ID}
		}
		s.cfg.OnDead(ctx, DeadLetter{
			Entry: d.Entry, ID: d.ID, Topic: d.Topic, Reason: d.Reason,
			Attempts: d.Claims, Failures: d.Failures, Activation: d.Activation, Died: d.At, Key: d.Key,
			Content: body, Cursor: d.Entry,
		})
	}
}

// Redrive turns dead letters into timers again, the oldest first, and deletes
// them, each in one atomic step. The next delivery of each is attempt 1.
// Timers that are dead-lettered during the call are not part of it.
//
// After an error, the result counts the dead letters processed so far; another
// call continues. If the options select one Entry that does not exist, the error
// is ErrNotFound.
func (c *Client) Redrive(ctx context.Context, topic string, o wakebelltype.RedriveOptions) (wakebelltype.RedriveResult, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.RedriveResult{}, err
	}
	r, err := c.store.Redrive(ctx, full, o)
	c.record(ctx, wakebelltype.AuditTopicRedrive, full, audit.Result{
		Count: r.Redriven + r.Overwritten, Detail: filtered(o.Filter), Err: err,
	})
	return r, err
}

// DeleteDead deletes the dead letters that the filter selects, and returns their
// number; the zero filter selects all. After an error, the number is that of the
// dead letters deleted so far. If the filter selects one Entry that does not
// exist, the error is ErrNotFound.
func (c *Client) DeleteDead(ctx context.Context, topic string, f wakebelltype.DeadFilter) (int64, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return 0, err
	}
	n, err := c.store.DeleteDead(ctx, full, f)
	c.record(ctx, wakebelltype.AuditTopicDeleteDead, full, audit.Result{Count: n, Detail: filtered(f), Err: err})
	return n, err
}
