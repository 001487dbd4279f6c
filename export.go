package wakebell

import (
	"context"
	"io"
	"iter"
	"strconv"

	"github.com/wakebell/wakebell/redisops/audit"
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
// and names the line, the field and the bound; all lines before it are stored. It also
// wraps ErrInvalid if the last line is missing, or the topic is being resharded.
func (c *Client) ImportTopic(ctx context.Context, r io.Reader, o wakebelltype.ImportOptions) iter.Seq2[wakebelltype.Imported, error] {
	return func(yield func(wakebelltype.Imported, error) bool) {
		if c == nil || c.store == nil {
			yield(wakebelltype.Imported{}, errNoClient)
			return
		}
		var last wakebelltype.Imported
		var err error
		for last, err = range transfer.Import(ctx, c.store, r, o, c.limit, c.fullName) {
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
