package wakebell

import (
	"context"
	"iter"
	"strconv"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/wakebelltype"
)

// MoveTopic moves a topic to another Redis or Cluster, that of to, under the same name
// behind the prefix of to: timers with their attempts, dead letters, marks of Once, counts
// and the history; with the number of shards, a pause and overrides, if the target has no
// timers, or none of these. Nodes of both Redis may handle the topic meanwhile, and clients
// may use it, but a call about an id finds only what is where it looks; docs/operations.md
// has the order of the steps.
//
// It returns an iterator over its progress, a few times a second, whose last value is
// Done: the source has neither timers nor dead letters. A timer that a handler has is not
// moved before it is settled. One without a key that is due within 10 s, or has been due
// for less, is left to the nodes of the source, unless o.All. Timers with the same key are
// moved together, when a handler has none of them; if there are more than 2,000, when
// there are fewer. A timer whose id the target has is dropped. Dead letters get new
// entries.
//
// If the loop over the iterator ends before, what was moved is in the target, and another
// call with the same target, of any process, continues. If the process is killed, up to
// 200 timers or 1 MiB of each shard are on their way: they are in the source, no node
// delivers them, and they arrive when another call continues. AbortMove puts them back.
// After an error, which it yields with the progress, the iterator ends. It wraps
// ErrInvalid if the clocks of the two Redis differ by more than 500 ms, if one of the two
// topics is being resharded, or if a move to another Redis has begun.
func (c *Client) MoveTopic(ctx context.Context, topic string, to *Client, o wakebelltype.MoveOptions) iter.Seq2[wakebelltype.Moving, error] {
	return func(yield func(wakebelltype.Moving, error) bool) {
		full, err := c.fullName(topic)
		var there string
		switch {
		case err != nil:
		case to == nil || to.store == nil:
			err = argument.Invalid("to", "nil or zero; use NewClient")
		default:
			there, err = to.fullName(topic)
		}
		if err != nil {
			yield(wakebelltype.Moving{}, err)
			return
		}
		var last wakebelltype.Moving
		for p, failed := range c.store.Move(ctx, full, to.store, there, o) {
			last, err = wakebelltype.Moving{Moved: p.Moved, Left: p.Left, Done: p.Done}, failed
			if !yield(last, err) {
				break
			}
		}
		r := audit.Result{Count: last.Moved, Detail: audit.Details("left", strconv.FormatInt(last.Left, 10)), Err: err}
		c.record(ctx, wakebelltype.AuditTopicMove, full, r)
		to.record(ctx, wakebelltype.AuditTopicMove, there, r)
	}
}

// AbortMove ends a MoveTopic whose target is lost, so that the topic can be moved to
// another Redis: it puts the timers and dead letters back that were on their way when a
// process was killed, and returns how many there were. Those that had arrived in the
// target are then in both Redis. While the target answers, continue the move with
// MoveTopic instead.
func (c *Client) AbortMove(ctx context.Context, topic string) (int64, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return 0, err
	}
	back, err := c.store.AbortMove(ctx, full)
	c.record(ctx, wakebelltype.AuditTopicMove, full, audit.Result{Count: back, Detail: "aborted", Err: err})
	return back, err
}
