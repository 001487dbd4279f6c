package keeper

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/joinref"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Part is the delivery of a timer on which joins wait. A nil Part is that of any other timer.
type Part struct {
	of     *poller.Delivery
	joins  []joins.Ref
	closed atomic.Bool // the handler has settled it, or its outcome was noted
}

// PartOf returns the Part of a delivery; nil: no join waits for it.
func PartOf(of *poller.Delivery, headers []wakebelltype.Header) *Part {
	if len(headers) == 0 {
		return nil
	}
	refs := joins.RefsOf(headers)
	if refs == nil {
		return nil
	}
	return &Part{of: of, joins: refs}
}

// Began measures the beginning of a handler, if the timer has a join, and tells watchers what
// ended its wait.
func Began(of *poller.Delivery, headers []wakebelltype.Header) {
	if len(headers) == 0 || of.Claims > 1 || of.Failures > 0 || of.Snoozed {
		return
	}
	i := slices.IndexFunc(headers, func(h wakebelltype.Header) bool { return h.Key == joins.Header })
	if i < 0 {
		return
	}
	topic, ok := of.Attachment().(*Topic)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(of.Context(), noteTimeout)
	defer cancel()
	watched := of.Watched()
	join, found := topic.Joins.Began(ctx, joins.Ref{Topic: of.Topic, ID: of.ID, Name: headers[i].Value}, watched)
	if watched && found {
		of.Emit(wakebelltype.Event{Kind: wakebelltype.EventJoined, Text: joinref.EndOfWait(join)})
	}
}

// noteTimeout bounds the calls for the joins of a part, besides the retries of the store.
const noteTimeout = 10 * time.Second

// Ended notes the outcome of a part at its joins, if it ends the timer, before it is settled;
// the first call counts. The error says that the lease is lost, or that the Redis of a join
// does not take the note for now: the timer must not be settled then, because a part that has ended without a
// note is taken for cancelled. RetryOnExpiry is that of the topic.
func (p *Part) Ended(outcome poller.Outcome, retryOnExpiry bool) error {
	if p == nil || p.closed.Swap(true) {
		return nil
	}
	end, ends := p.end(outcome, retryOnExpiry)
	topic, ok := p.of.Attachment().(*Topic)
	if !ends || !ok {
		return nil
	}
	// The context of the handler may have ended, as in a drain, and the outcome counts.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.of.Context()), noteTimeout)
	defer cancel()
	looked := false
	err := p.of.FencedOutcome(ctx, func(token exchange.Token) (bool, error) {
		if looked { // the lease was extended since then, which proves as much: other heartbeats must not matter
			return true, nil
		}
		looked = true
		return topic.Store.Holds(ctx, topic.Physical, p.of.ID, token)
	})
	switch {
	case errors.Is(err, poller.ErrSuperseded), errors.Is(err, poller.ErrCancelled), errors.Is(err, poller.ErrSettled):
		return nil // the outcome does not count
	case err != nil:
		return p.unnoted(ctx, topic, err)
	}
	for _, r := range p.joins {
		err = errors.Join(err, topic.Joins.NoteOne(ctx, r, end))
	}
	if passes(err) {
		return p.unnoted(ctx, topic, err)
	}
	if err != nil { // the state of the join is broken, which the audit finds
		topic.Logger.DebugContext(ctx, "the end of a part was not noted at its join", "topic", p.of.Topic, "id", p.of.ID, "err", err)
	}
	return nil
}

// passes reports whether an end that was not noted may be noted later: the Redis of a join does
// not answer, has no memory, or refuses the user until an operator grants the right.
func passes(err error) bool {
	for _, later := range []error{exchange.ErrUnavailable, context.DeadlineExceeded, wakebelltype.ErrMemoryFull, wakebelltype.ErrDenied} {
		if errors.Is(err, later) {
			return true
		}
	}
	return false
}

// unnoted returns an error after which the end may be noted once more. That of a lost lease is
// nothing to warn of.
func (p *Part) unnoted(ctx context.Context, topic *Topic, err error) error {
	level := slog.LevelWarn
	if errors.Is(err, poller.ErrLeaseLost) {
		level = slog.LevelDebug
	}
	p.closed.Store(false)
	topic.Logger.Log(ctx, level, "the end of a part could not be noted at its join; the part is delivered again", "topic", p.of.Topic, "id", p.of.ID, "err", err)
	return err
}

// end returns how the timer ends with an outcome; false: it does not end.
func (p *Part) end(o poller.Outcome, retryOnExpiry bool) (end joins.End, ends bool) {
	last := p.of.Failures+1 >= p.of.MaxFailures && p.of.Context().Err() == nil
	end, ends = EndOf(leasing.Outcome(o), last && (o.Kind == leasing.FailedFor || !retryOnExpiry))
	end.Part = wakebelltype.Part{Topic: p.of.Topic, ID: p.of.ID}
	if d, ok := p.of.Kept().(*Delivery); ok && end.End == wakebelltype.EndDone {
		end.Result = d.written()
	}
	return end, ends
}

// EndOf returns how a timer ends with an outcome, of which a failure is the last one that it
// may have; false: it does not end.
func EndOf(o leasing.Outcome, last bool) (end joins.End, ends bool) {
	switch o.Kind {
	case leasing.Succeeded:
		end.End = wakebelltype.EndDone
		return end, true
	case leasing.Failed, leasing.FailedFor:
		ends = last
	case leasing.Rejected, leasing.Undeliverable, leasing.Expired, leasing.ExpiredDead:
		ends = true
	default: // it is due again
	}
	end.End, end.Reason = wakebelltype.EndDead, o.Reason
	return end, ends
}
