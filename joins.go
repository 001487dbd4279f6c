package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/keeper"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// joining is what a draft has to do with joins. It is not changed: drafts share it.
type joining struct {
	name  string              // of its join; empty: it has none
	open  bool                // parts are added to its join later
	parts []wakebelltype.Part // of its join
	of    []wakebelltype.Part // the timers of the joins of which it is a part

	refs []joins.Ref // those joins, when they are known
}

// check checks the options of a join against the others.
func (j *joining) check(d *Draft) error {
	switch {
	case j.name == "":
		return nil
	case !d.planned || d.policy != wakebelltype.PolicyReplace || d.once != 0:
		return argument.Invalid("After", "it needs In or At, the instant at which it ends the wait, and excludes Debounce, IfExists and Once")
	case len(j.parts) > joins.MaxParts:
		return argument.Invalid("After", "%d parts, at most %d", len(j.parts), joins.MaxParts)
	}
	return nil
}

// with returns what j says, to be changed.
func (j *joining) with() *joining {
	if j == nil {
		return &joining{}
	}
	same := *j
	same.parts, same.of = slices.Clip(j.parts), slices.Clip(j.of)
	return &same
}

// After makes the timer that of a join: it becomes due when the given timers, its parts, have
// ended, or at its instant, if that is earlier. So In or At is the time-out, and required. A
// part has ended when a handler has acknowledged it, or when it became a dead letter, was
// discarded or cancelled; Timer.Parts tells the handler of each. Parts are of any topics on the
// same Redis; they are other timers of the call that schedules this one, or were scheduled
// before: those that do not exist any more count as ended. A join has at most 100,000 parts.
//
// The node that handles a part notes its end before it settles it, so the timer is due at
// once after the last end. Ends that no node notes are found by audits of the nodes, at first
// after 15 s, then up to 10 min apart: cancelled parts, and those that a Python worker handled,
// which count as cancelled. A part that is delivered again after its end was noted, because its
// node crashed before the settlement, keeps its first end.
func After(parts ...wakebelltype.Part) ScheduleOption {
	return func(d *Draft) error {
		*d = d.waiting(parts)
		return nil
	}
}

// AfterOpen is After for a join to which more parts are added, by PartOf and Client.AddParts.
// It does not become due before its instant until Client.CloseJoin closes it.
func AfterOpen(parts ...wakebelltype.Part) ScheduleOption {
	return func(d *Draft) error {
		*d = d.waiting(parts)
		d.join.open = true
		return nil
	}
}

// waiting returns the draft with further parts of its join.
func (d Draft) waiting(parts []wakebelltype.Part) Draft {
	d.join = d.join.with()
	d.join.parts = append(d.join.parts, parts...)
	if d.join.name == "" {
		d.join.name = joins.NewName()
	}
	return d
}

// after returns the draft with drafts as further parts of its join.
func (d Draft) after(drafts []Draft) Draft {
	parts := make([]wakebelltype.Part, len(drafts))
	for i, p := range drafts {
		parts[i] = wakebelltype.Part{Topic: p.topic, ID: p.id}
	}
	if d = d.waiting(parts); d.err == nil {
		d.err = d.join.check(&d)
	}
	return d
}

// PartOf makes the timer a part of the join of another timer, which was scheduled before with
// AfterOpen, or is in the same call. Schedule returns ErrNotFound if there is no such join, and
// ErrInvalid if it is closed.
func PartOf(topic, id string) ScheduleOption {
	return func(d *Draft) error {
		d.join = d.join.with()
		d.join.of = append(d.join.of, wakebelltype.Part{Topic: topic, ID: id})
		return nil
	}
}

// PartEnd says how a part of a join has ended.
type PartEnd struct {
	wakebelltype.PartEnd
	Result *Result `json:"result"` // of a part that is done; nil: none
}

// PartBatch is drafts that are the parts of a join; Batch returns it.
type PartBatch struct{ parts []Draft }

// Batch makes drafts the parts of a join, whose timer Then takes:
//
//	c.Schedule(ctx, wakebell.Batch(mails...).Then(report)...)
func Batch(parts ...Draft) PartBatch { return PartBatch{parts} }

// Then returns the drafts with one more, which is due when they have ended, or at its instant:
// it needs In or At. Pass all of them to one call of Client.Schedule.
func (b PartBatch) Then(d Draft) []Draft {
	return append(slices.Clone(b.parts), d.after(b.parts))
}

// Chain makes each draft but the first due when the one before it has ended, or at its own
// instant: they need In or At. A handler asks Timer.Parts whether the one before was done.
// Pass all drafts to one call of Client.Schedule.
func Chain(drafts ...Draft) []Draft {
	chain := slices.Clone(drafts)
	for i := 1; i < len(chain); i++ {
		chain[i] = chain[i].after(chain[i-1 : i])
	}
	return chain
}

// scheduleJoined is send for drafts some of which have to do with joins.
func (c *Client) scheduleJoined(ctx context.Context, key *timers.Key, drafts []Draft) ([]wakebelltype.Scheduled, error) {
	if _, err := c.batch(drafts); err != nil {
		return nil, err
	}
	planned := make([]joins.Timer, len(drafts))
	for i := range drafts {
		var err error
		if planned[i], err = c.planned(&drafts[i]); err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
	}
	key = key.Each() // what is sent again may have other joins
	plan, err := c.joins.Prepare(ctx, key, planned)
	if err != nil {
		return nil, err
	}
	var order [2][]int // those with joins, which must be there when their parts end, and the others
	drafts = slices.Clone(drafts)
	for i := range drafts {
		drafts[i].join = drafts[i].join.with()
		drafts[i].join.refs = plan.Refs[i]
		first := 1
		if drafts[i].join.name != "" {
			first = 0
		}
		order[first] = append(order[first], i)
	}
	stored := make([]wakebelltype.Scheduled, len(drafts))
	var few error
	for _, list := range order {
		some := make([]Draft, len(list))
		for k, i := range list {
			some[k] = drafts[i]
		}
		done, err := c.send(ctx, key, some)
		if errors.Is(err, ErrTooFewReplicas) {
			few, err = err, nil
		}
		if err != nil {
			return nil, err
		}
		for k, i := range list {
			stored[i] = done[k]
		}
	}
	return stored, errors.Join(few, c.joins.Finish(ctx, plan, stored))
}

// planned returns what a draft has to do with joins, with full topics.
func (c *Client) planned(d *Draft) (t joins.Timer, err error) {
	t.ID, t.Key = d.id, d.key
	if t.Topic, err = c.fullName(d.topic); err != nil || d.join == nil {
		return t, err
	}
	t.Name, t.Open, t.Life = d.join.name, d.join.open, d.in
	if !d.at.IsZero() {
		t.Life = time.Until(d.at)
	}
	if t.Parts, err = c.fullParts("After", d.join.parts); err == nil {
		t.Of, err = c.fullParts("PartOf", d.join.of)
	}
	return t, err
}

// Joiner is what clients offer for joins, with Redis and over the network.
type Joiner interface {
	Join(ctx context.Context, topic, id string) (wakebelltype.Join, error)
	Parts(ctx context.Context, topic, id string, p wakebelltype.Page) iter.Seq2[PartEnd, error]
	AddParts(ctx context.Context, topic, id string, parts ...wakebelltype.Part) error
	CloseJoin(ctx context.Context, topic, id string) error
	CancelJoin(ctx context.Context, topic, id string) (parts int64, err error)
}

var _ Joiner = (*Client)(nil)

// Join returns the state of the join of a timer; see After. It stays for an hour after the end
// of the timer. Errors include ErrNotFound.
func (c *Client) Join(ctx context.Context, topic, id string) (wakebelltype.Join, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Join{}, err
	}
	_, join, err := c.joins.Head(ctx, joins.Ref{Topic: full, ID: id})
	return join, err
}

// Parts returns an iterator over the parts of the join of a timer, as Timer.Parts does.
func (c *Client) Parts(ctx context.Context, topic, id string, p wakebelltype.Page) iter.Seq2[PartEnd, error] {
	full, err := c.fullName(topic)
	if err != nil {
		return func(yield func(PartEnd, error) bool) { yield(PartEnd{}, err) }
	}
	return partsOf(ctx, c.joins, c.on.Prefix, joins.Ref{Topic: full, ID: id}, p)
}

// AddParts adds timers that exist to a join that was scheduled with AfterOpen. Add others with
// PartOf when they are scheduled. A timer that does not exist any more counts as ended: by its
// result, its dead letter, or as missing. Errors include ErrNotFound.
func (c *Client) AddParts(ctx context.Context, topic, id string, parts ...wakebelltype.Part) error {
	full, err := c.fullName(topic)
	if err != nil {
		return err
	}
	if parts, err = c.fullParts("parts", parts); err != nil {
		return err
	}
	r, err := c.joins.Add(ctx, joins.Ref{Topic: full, ID: id}, parts...)
	if err != nil {
		return err
	}
	return c.joins.Adopt(ctx, r, parts...)
}

// CloseJoin closes a join that was scheduled with AfterOpen to further parts. Its timer becomes
// due when all parts have ended, at once if they have. Errors include ErrNotFound.
func (c *Client) CloseJoin(ctx context.Context, topic, id string) error {
	full, err := c.fullName(topic)
	if err != nil {
		return err
	}
	return c.joins.Close(ctx, joins.Ref{Topic: full, ID: id})
}

// CancelJoin cancels the timer of a join, and the parts that have not ended, running ones too.
// It returns how many parts it has cancelled; after an error, repeat it. Cancel cancels the
// timer alone. Errors include ErrNotFound.
func (c *Client) CancelJoin(ctx context.Context, topic, id string) (parts int64, err error) {
	full, err := c.fullName(topic)
	if err != nil {
		return 0, err
	}
	_, parts, err = c.joins.Cancel(ctx, joins.Ref{Topic: full, ID: id}, nil)
	return parts, err
}

// partsOf lists the parts of a join, whose topics have a prefix.
func partsOf(ctx context.Context, store *joins.Store, prefix string, r joins.Ref, p wakebelltype.Page) iter.Seq2[PartEnd, error] {
	return paging.All(p, func(after string, limit int) (list []PartEnd, next string, err error) {
		return pageOf(ctx, store, prefix, r, after, limit, false)
	})
}

// pageOf reads a page of the parts of a join; with open, of those only that have not ended.
func pageOf(ctx context.Context, store *joins.Store, prefix string, r joins.Ref, after string, limit int, open bool) (list []PartEnd, next string, err error) {
	from := 0
	if after != "" {
		if from, err = strconv.Atoi(after); err != nil || from < 0 {
			return nil, "", argument.Invalid("After", "%s is not a valid page cursor", quoted(after))
		}
	}
	page, err := store.Page(ctx, r, from, cmp.Or(limit, paging.MaxPage), open)
	if err != nil {
		return nil, "", err
	}
	for _, e := range page.Ends {
		end := PartEnd{PartEnd: wakebelltype.PartEnd{Part: e.Part, End: e.End, Reason: e.Reason, At: e.At, Cursor: strconv.Itoa(e.Rank + 1)}}
		end.Topic = strings.TrimPrefix(end.Topic, prefix)
		if of := e.Result; of != nil {
			end.Result = &Result{Content: content(of.Payload, e.ID), Attempt: of.Attempt, Activation: of.Activation, At: of.At}
		}
		list = append(list, end)
	}
	if page.Next > 0 {
		next = strconv.Itoa(page.Next)
	}
	return list, next, nil
}

// Parts returns an iterator over the parts of the join of the timer, in the order in which they
// were added, with how they have ended; see After. A part without an End had not ended when it
// was read: the join became due at its instant. ReadResult decodes the result of one. After an
// error, which it yields with a zero PartEnd, the iterator ends; it is ErrNotFound if the timer
// has no join, and one that wraps ErrInvalid where handlers cannot read joins.
func (m Meta) Parts(ctx context.Context) iter.Seq2[PartEnd, error] {
	d, ok := m.delivery.(interface {
		Parts(ctx context.Context, name string) iter.Seq2[PartEnd, error]
	})
	name, found := m.Headers.Get(joins.Header)
	switch {
	case m.delivery != nil && !found:
		return func(yield func(PartEnd, error) bool) {
			yield(PartEnd{}, fmt.Errorf("%w: a join of %s on %s", ErrNotFound, quoted(m.ID), quoted(m.Topic)))
		}
	case !ok:
		return func(yield func(PartEnd, error) bool) { yield(PartEnd{}, errNoDelivery) }
	}
	return d.Parts(ctx, name)
}

// Parts implements Parts of a timer whose join has a name.
func (d delivered) Parts(ctx context.Context, name string) iter.Seq2[PartEnd, error] {
	topic, ok := d.Attachment().(*keeper.Topic)
	if !ok {
		return func(yield func(PartEnd, error) bool) {
			yield(PartEnd{}, argument.Invalid("timer", "messages of queues have no joins"))
		}
	}
	return partsOf(ctx, topic.Joins, topic.Prefix, joins.Ref{Topic: d.Topic, ID: d.ID, Name: name}, wakebelltype.Page{})
}
