package wakebell

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/redisops/audit"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/transfer"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ExportTopic writes all of a topic to w as JSON lines, which ImportTopic reads: the
// number of shards, a pause and overrides, timers with their payloads as they are stored,
// dead letters, and marks of Once. It does not write leases, counts or the history. The
// last line has counts, so that a file that was cut off is recognised. docs/cli.md
// describes the lines.
//
// It returns an iterator over its progress, a few times a second, whose last value is
// Done; nothing is written before the loop over it begins. It reads at most about 200
// timers and 1 MiB at a time, in no order, while nodes and clients use the topic. A timer
// that exists throughout is written once; one that is scheduled, handled or cancelled
// meanwhile is written as it was at some instant, or not at all. Marks are found by a scan
// of all keys of Redis.
//
// After an error, which it yields with the progress, the iterator ends. The error wraps
// ErrInvalid if the topic is being resharded or moved. After a failover or a restart of
// Redis the export has to begin again.
func (c *Client) ExportTopic(ctx context.Context, topic string, w io.Writer) iter.Seq2[wakebelltype.Exported, error] {
	full, err := c.fullName(topic)
	if err != nil {
		return func(yield func(wakebelltype.Exported, error) bool) { yield(wakebelltype.Exported{}, err) }
	}
	return transfer.Export(ctx, c.store, full, topic, w)
}

// ImportTopic stores what ExportTopic has written. It returns an iterator over its
// progress, a few times a second, whose last value is Done.
//
// A topic without timers and dead letters gets the number of shards of the exported one,
// and a topic without a pause and overrides gets those. A timer is due at the instant that
// it had, or at its next attempt if it had failed; a lease is not imported. A timer whose
// id exists stays as it is, without Replace, so an import can be repeated. But a timer
// that was imported and has been handled since is stored again: to continue an import
// that was interrupted, pass the line after its Line as FromLine. A dead letter that the
// topic has is not stored again.
//
// The error, which it yields with the progress, wraps ErrInvalid if a line cannot be read,
// and names the line, the field and the bound, or if a body is encrypted for the exported
// topic and o.Topic is another one; all lines before it are stored. It also
// wraps ErrInvalid if the last line is missing, or the topic is being resharded.
func (c *Client) ImportTopic(ctx context.Context, r io.Reader, o wakebelltype.ImportOptions) iter.Seq2[wakebelltype.Imported, error] {
	return func(yield func(wakebelltype.Imported, error) bool) {
		if c == nil || c.store == nil {
			yield(wakebelltype.Imported{}, errNoClient)
			return
		}
		var last wakebelltype.Imported
		var err error
		for last, err = range transfer.Import(ctx, c.store, r, o, c.on.PayloadLimit, c.fullName, movable) {
			if !yield(last, err) {
				break
			}
		}
		full, unnamed := c.fullName(last.Topic)
		if o.DryRun || unnamed != nil {
			return
		}
		detail := audit.Details("dead letters", strconv.FormatInt(last.Dead, 10), "existed", strconv.FormatInt(last.Existed, 10))
		c.record(ctx, wakebelltype.AuditTopicImport, full, audit.Result{Count: last.Stored + last.Replaced + last.Dead, Detail: detail, Err: err})
	}
}

// movable refuses a payload whose body was encrypted for its topic.
func movable(raw []byte) error {
	env, err := envelope.Decode(raw)
	if err != nil || !payload.Marked(env.Headers, nil) || !payload.Bound(env.Headers, env.Body) {
		return nil //nolint:nilerr // a malformed payload is stored as it is
	}
	return fmt.Errorf("the body is encrypted for the exported topic (%s), and could not be decrypted in another one; import it into that topic",
		payload.Description(env.Headers, env.Body))
}

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
// moved together, when a handler has none of them; if there are many, in several steps,
// between which no further one starts. A timer whose id the target has is dropped. Dead letters get new
// entries.
//
// If the loop over the iterator ends before, what was moved is in the target, and another
// call with the same target, of any process, continues. If the process is killed, up to
// 200 timers or 512 KiB of each shard are on their way: they are in the source, no node
// delivers them, and they arrive when another call continues. AbortMove puts them back.
// After an error, which it yields with the progress, the iterator ends. It wraps
// ErrInvalid if the clocks of the two Redis differ by more than 500 ms, if one of the two
// topics is being resharded, if a move to another Redis has begun, or, unless o.Force, if a
// join has its timer or parts on the topic, or a recurring schedule with Overlap that is not
// paused runs there.
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
		if !o.Force {
			err = transfer.MayMove(ctx, c.store, schedulestore.New(c.store).Overlapping, full, c.on.Prefix)
		}
		if err != nil {
			yield(last, err)
		} else {
			for p, failed := range c.store.Move(ctx, full, to.store, there, o) {
				last, err = wakebelltype.Moving{Moved: p.Moved, Left: p.Left, Done: p.Done}, failed
				if !yield(last, err) {
					break
				}
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
// target are then in both Redis. It may be called in any state of the topic. While the target answers, continue the move with
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
