package queue

import (
	"context"
	"iter"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Throughput returns how many messages of a queue were published, handled, failed and
// dead-lettered since a duration ago, which is between a minute and 90 days: by minute
// for up to 24 h, otherwise by day. Published messages, duplicates not among them, are
// in the field Scheduled, and so are redriven ones; messages that Python publishes are
// not counted. Nodes write what they handled every 5 s; what a node counted before a
// crash and did not write is missing.
func (c *Client) Throughput(ctx context.Context, name wakebelltype.QueueKeys, since time.Duration) (wakebelltype.Throughput, error) {
	q, err := c.listed(ctx, name)
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	return q.Throughput(ctx, since)
}

// History returns an iterator over the recorded attempts of a queue that the filter
// selects, in the order in which they were recorded; see the option wakebell.History.
// Attempts of one message are those with its ID in the filter; if the last of them is
// Final, it says how the message ended. After an error, which it yields with a zero
// Attempt, the iterator ends.
func (c *Client) History(ctx context.Context, name wakebelltype.QueueKeys, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error] {
	q, err := c.listed(ctx, name)
	if err == nil && f.Last != 0 && p.After != "" {
		err = argument.Invalid("After", "it excludes Last")
	}
	if err != nil {
		return func(yield func(wakebelltype.Attempt, error) bool) { yield(wakebelltype.Attempt{}, err) }
	}
	return paging.All(p, func(after string, limit int) ([]wakebelltype.Attempt, string, error) {
		if f.Last != 0 {
			last, err := q.LastHistory(ctx, f, f.Last)
			return last, "", err
		}
		return q.History(ctx, f, after, limit)
	})
}
