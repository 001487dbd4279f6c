package wakebell

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/keeper"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// History sets which attempts of a topic or a queue this node records in Redis, where
// Client.History and queue.Client.History find them; default
// wakebelltype.HistoryFailures. Redis keeps about the last 10,000 attempts of a topic
// or a queue, for up to 7 days.
//
// Attempts are written in batches, every 250 ms, beside the deliveries: a write that
// fails is logged, at most once a minute, and the attempts of a node that crashes are
// missing.
func History(p wakebelltype.HistoryPolicy) CommonOption {
	return commonOption(func(s *settings) error {
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
			last, err := c.reads.LastHistory(ctx, full, f, f.Last)
			return last, "", err
		}
		return c.reads.History(ctx, full, f, after, limit)
	})
}

// Throughput returns how many timers of a topic were scheduled, handled, failed and
// dead-lettered since a duration ago, which is between a minute and 90 days: by minute
// for up to 24 h, otherwise by day. Nodes write what they handled every 5 s; what a
// node counted before a crash and did not write is missing. Runs of recurring schedules
// and redrives count as scheduled. Timers that Python schedules are not counted as such.
func (c *Client) Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	return c.reads.Throughput(ctx, full, since)
}

// Audit returns an iterator over the recorded operations that the filter selects, the
// oldest first: pauses, resumes, changed settings, cancellations of all timers,
// redrives, deletions, purges, forced releases of gates, changes of recurring
// schedules, and what tools for operators report by RecordChange. They are those of
// all processes on this Redis with the same AuditConfig.Key, under full names. Redis
// keeps about the last 10,000.
//
// An entry is written after its operation. One that cannot be written is logged, at
// most once a minute, and does not fail the operation. After an error, which it
// yields with a zero AuditEntry, the iterator ends.
func (c *Client) Audit(ctx context.Context, f wakebelltype.AuditFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.AuditEntry, error] {
	if c == nil || c.store == nil {
		return func(yield func(wakebelltype.AuditEntry, error) bool) { yield(wakebelltype.AuditEntry{}, errNoClient) }
	}
	if f.Last == 0 {
		return paging.All(p, func(after string, limit int) ([]wakebelltype.AuditEntry, string, error) {
			return c.reads.Timers().Audit.List(ctx, f, after, limit)
		})
	}
	return paging.All(wakebelltype.Page{Limit: p.Limit}, func(string, int) ([]wakebelltype.AuditEntry, string, error) {
		last, err := c.reads.Timers().Audit.Last(ctx, f, f.Last)
		return last, "", err
	})
}

// WithCaller returns ctx with the name that the audit records for operations with it,
// such as the user of a web page, in place of AuditConfig.Caller. It has at most 256
// bytes. A node ignores it in requests of peers, which it knows by their credentials.
func WithCaller(ctx context.Context, name string) context.Context { return audit.WithCaller(ctx, name) }

// RecordChange writes the entry of what a tool for operators changed by calls that are
// not recorded by themselves. Call it once after the last call of a change of many
// timers, also of one that was interrupted. A change with an Error and no Count is not
// recorded. A peer of a node needs the right to operate the topic or the queue. The
// error wraps ErrInvalid; an entry that cannot be written is logged as by Audit.
func (c *Client) RecordChange(ctx context.Context, change wakebelltype.Change) error {
	full, err := c.fullName(change.Name)
	if err != nil {
		return err
	}
	return c.store.Timers().Audit.Report(ctx, full, change)
}

// record writes the entry of an operation on a topic.
func (c *Client) record(ctx context.Context, operation wakebelltype.AuditOperation, full string, r audit.Result) {
	c.store.Timers().Audit.Record(ctx, operation, full, r)
}

// overrides describes the overrides of a Retune.
func overrides(s wakebelltype.Settings) string {
	var pairs []string
	for _, t := range tuning.All {
		if v := t.Get(&s); v != 0 {
			pairs = append(pairs, t.Name, t.Text(v))
		}
	}
	if len(pairs) == 0 {
		return "no overrides"
	}
	return audit.Details(pairs...)
}

// filtered describes a selection of dead letters.
func filtered(f wakebelltype.DeadFilter) string {
	pairs := []string{"entry", f.Entry, "reason contains", f.Reason, "reason begins with", f.ReasonPrefix}
	if f.OlderThan > 0 {
		pairs = append(pairs, "older than", f.OlderThan.String())
	}
	if f.NewerThan > 0 {
		pairs = append(pairs, "newer than", f.NewerThan.String())
	}
	return audit.Details(pairs...)
}

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

// Report returns what the handlers of a timer have reported, whether it exists or not. It is
// zero if there is nothing. Of a topic with keys, it asks all shards.
func (c *Client) Report(ctx context.Context, topic, id string) (Report, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Report{}, err
	}
	names, err := c.store.Recent(ctx, full, id)
	if err != nil {
		return Report{}, err
	}
	found, err := progress.New(c.store.Timers()).Read(ctx, names, id)
	if err != nil {
		return Report{}, err
	}
	r := Report{Progress: found.Progress}
	if of := found.Result; of != nil {
		r.Result = &Result{Content: content(of.Payload, id), Attempt: of.Attempt, Activation: of.Activation, At: of.At}
	}
	return r, nil
}

// Wait waits until a timer has ended, and returns how, with its result. A timer that does not
// exist has ended. It watches the events of the topic, as Tail does, and looks at the timer
// after 250 ms, and then at most 5 s apart, in case one is missed. A timer that is scheduled
// again before Wait has looked is waited for. Errors are those of Get, and the cause of ctx.
func (c *Client) Wait(ctx context.Context, topic, id string) (Ending, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Ending{}, err
	}
	w := keeper.Waiting{
		ID:     id,
		Exists: func(ctx context.Context) (bool, error) { return c.store.Exists(ctx, full, id) },
		Tail: func(ctx context.Context, yield func(wakebelltype.Event) bool) error {
			return c.store.Tail(ctx, full, yield)
		},
		Remains: func(ctx context.Context) (keeper.Ended, error) { return c.remains(ctx, topic, id) },
	}
	ended, err := w.Wait(ctx)
	if err != nil {
		return Ending{}, err
	}
	e := Ending{End: ended.End, Reason: ended.Reason}
	if e.Report, err = c.Report(ctx, topic, id); e.End != wakebelltype.EndDone {
		e.Result = nil // of a run that did not end it
	}
	return e, err
}

// remainsSought is the number of dead letters among which a timer is sought that has ended.
const remainsSought = 1000

// remains says how a timer that does not exist has ended, by what it left last.
func (c *Client) remains(ctx context.Context, topic, id string) (keeper.Ended, error) {
	r, err := c.Report(ctx, topic, id)
	if err != nil {
		return keeper.Ended{}, err
	}
	letters, err := c.LastDead(ctx, topic, remainsSought)
	if err != nil {
		return keeper.Ended{}, err
	}
	for _, d := range slices.Backward(letters) {
		if d.ID == id && (r.Result == nil || d.Died.After(r.Result.At)) {
			return keeper.Ended{End: wakebelltype.EndDead, Reason: d.Reason}, nil
		}
	}
	if r.Result != nil {
		return keeper.Ended{End: wakebelltype.EndDone}, nil
	}
	return keeper.Ended{End: wakebelltype.EndMissing}, nil
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
