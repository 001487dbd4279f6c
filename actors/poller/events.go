package poller

import (
	"time"

	"github.com/wakebell/wakebell/actors/records"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Events are emitted only while a client watches the topic. Loops over many
// leases check that once.

// clock is the source's clock at a moment of the local clock.
type clock struct{ source, local time.Time }

func (c clock) now() time.Time {
	if c.source.IsZero() {
		return c.source
	}
	return c.source.Add(time.Since(c.local))
}

func (p *poller) emit(l *lease, e wakebelltype.Event) {
	e.At, e.ID, e.Attempt = p.clock.now(), l.ID, l.Claims
	p.Feed.Add(e)
}

func (p *poller) emitKind(l *lease, kind wakebelltype.EventKind) {
	if p.Feed.Watched.Load() {
		p.emit(l, wakebelltype.Event{Kind: kind})
	}
}

// settledEvent returns the event of a settlement; false for dead letters, whose event
// has their entry.
func settledEvent(v verdict) (wakebelltype.Event, bool) {
	e := wakebelltype.Event{Kind: wakebelltype.EventAcked, Took: v.took}
	switch v.kind {
	case exchange.Ack:
		if v.reason != "" { // only a rejection has a reason
			e.Kind, e.Text = wakebelltype.EventDiscarded, v.reason
		}
	case exchange.Fail:
		e.Kind, e.Text = wakebelltype.EventDiscarded, v.reason
	case exchange.Nack:
		e.Kind, e.RetryIn, e.Text = wakebelltype.EventRetried, v.delay, v.reason
	case exchange.Release:
		e.Kind = wakebelltype.EventReleased
	case exchange.DeadLetter:
		return e, false
	}
	return e, true
}

// emitSettled emits the event of a settlement, except for dead letters.
func (p *poller) emitSettled(v verdict) {
	if e, ok := settledEvent(v); ok {
		p.emit(v.lease, e)
	}
}

func (p *poller) emitCrashed(l *lease, o Outcome) {
	e := wakebelltype.Event{Kind: wakebelltype.EventCrashed, Took: p.took(l, false), Text: o.reason}
	if p.Feed.Watched.Load() {
		p.emit(l, e)
	}
	if !p.FinalCrashes { // otherwise its settlement is recorded
		p.record(l, e)
	}
}

// emitLeftToLease emits the event of a failure whose lease is left to expire.
func (p *poller) emitLeftToLease(l *lease, o Outcome) {
	e := wakebelltype.Event{
		Kind: wakebelltype.EventRetried, Took: p.took(l, false), RetryIn: max(time.Until(l.deadline), 0), Text: o.reason,
	}
	if p.Feed.Watched.Load() {
		p.emit(l, e)
	}
	p.record(l, e)
}

// took is how long the handler has had a lease, if an event or a record needs it.
func (p *poller) took(l *lease, succeeded bool) time.Duration {
	if !p.Feed.Collects() && !p.Records.Wants(succeeded, l.Claims > 1) {
		return 0
	}
	return time.Since(l.deliveredAt)
}

// attemptOf returns the record of the event that ended an attempt.
func attemptOf(e wakebelltype.Event) wakebelltype.Attempt {
	return wakebelltype.Attempt{
		ID: e.ID, Attempt: e.Attempt, Started: e.At.Add(-e.Took), Took: e.Took, Outcome: e.Kind, Error: e.Text,
	}
}

// record records the event that ended an attempt, if the policy says so.
func (p *poller) record(l *lease, e wakebelltype.Event) {
	if p.Records.Wants(e.Kind == wakebelltype.EventAcked, l.Claims > 1) {
		e.At, e.ID, e.Attempt = p.clock.now(), l.ID, l.Claims
		p.Records.Append(attemptOf(e))
		p.Records.Wake()
	}
}

// recordEnd records an attempt whose lease ended before its handler.
func (p *poller) recordEnd(l *lease, kind wakebelltype.EventKind, why string) {
	p.record(l, wakebelltype.Event{Kind: kind, Took: p.took(l, false), Text: why})
}

// recordSettled records a settlement, unless it is a release, which is no attempt, or a
// dead letter, which is recorded from the reply.
func (p *poller) recordSettled(v verdict) {
	if e, ok := settledEvent(v); ok && v.kind != exchange.Release {
		e.At, e.ID, e.Attempt = p.clock.now(), v.lease.ID, v.lease.Claims
		p.Records.Append(attemptOf(e))
	}
}

// RecordWith makes a topic record with r, from its first timer on.
func (c *Shared) RecordWith(r *records.Recorder) {
	var counts func() records.Counts
	if !c.NoCounts {
		counts = c.Counters.Recorded
	}
	c.Records = r.Add(c.Source.Name(), c.RecordStore, c.History, counts, c.Counters.Latest)
}
