package wakebell

import (
	"context"
	"iter"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/wakebelltype"
)

// History sets which attempts of a topic this node records in Redis, where
// Client.History finds them; default wakebelltype.HistoryFailures. Redis keeps about
// the last 10,000 attempts of a topic, for up to 7 days.
//
// Attempts are written in batches, every 250 ms, beside the deliveries: a write that
// fails is logged, at most once a minute, and the attempts of a node that crashes are
// missing.
func History(p wakebelltype.HistoryPolicy) HandlerOption {
	return topicOption(func(s *settings) error {
		if p.String() == "unknown" {
			return argument.Invalid("History", "%d, want HistoryOff, HistoryFailures or HistoryAll", p)
		}
		s.history = p
		return nil
	})
}

// History returns an iterator over the recorded attempts of a topic that the filter
// selects, in the order in which they were recorded; see the option History. Attempts
// of one timer are those with its ID in the filter; if the last of them is Final, it
// says how the timer ended. After an error, which it yields with a zero Attempt, the
// iterator ends.
func (c *Client) History(ctx context.Context, topic string, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error] {
	full, err := c.fullName(topic)
	if err == nil && f.Last != 0 && p.After != "" {
		err = argument.Invalid("After", "it excludes Last")
	}
	if err != nil {
		return func(yield func(wakebelltype.Attempt, error) bool) { yield(wakebelltype.Attempt{}, err) }
	}
	return paging.All(p, func(after string, limit int) ([]wakebelltype.Attempt, string, error) {
		if f.Last != 0 {
			last, err := c.store.LastHistory(ctx, full, f, f.Last)
			return last, "", err
		}
		return c.store.History(ctx, full, f, after, limit)
	})
}

// Throughput returns how many timers of a topic were scheduled, handled, failed and
// dead-lettered since a duration ago, which is between a minute and 90 days: by minute
// for up to 24 h, otherwise by day. Nodes write what they handled every 5 s; what a
// node counted before a crash and did not write is missing. Runs of recurring schedules
// and redrives do not count as scheduled.
func (c *Client) Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	return c.store.Throughput(ctx, full, since)
}
