package poller

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/observe"
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

// about returns an event with the timer and the instant that it is about.
func (p *poller) about(l *leasing.Lease, e wakebelltype.Event) wakebelltype.Event {
	e.At, e.ID, e.Attempt = p.clock.now(), l.ID, l.Claims
	return e
}

func (p *poller) emitDelivered(l *lease) {
	e := wakebelltype.Event{Kind: wakebelltype.EventDelivered, Lateness: l.Lateness()}
	if l.core.Snoozed {
		e.Text = "snoozed before"
	}
	p.Feed.Add(p.about(&l.core, e))
}

// Settled emits and records settlements, except for those of dead letters, whose event has
// their entry, and for those that the source refused.
func (p effects) Settled(f *leasing.Flight) {
	collects, settled := p.Feed.Collects(), 0
	for i := range f.Settling {
		v := &f.Settling[i]
		if v.Lease.Refused() || v.Kind == exchange.DeadLetter {
			continue
		}
		settled++
		if v.Panicked {
			p.unfinished(v.Lease)
		}
		records := v.Kind != exchange.Release && // no attempt
			p.Records.Wants(v.Kind == exchange.Ack && v.Reason == "", v.Lease.Claims > 1)
		if !collects && !records {
			continue
		}
		e := p.about(v.Lease, settledEvent(v))
		if collects {
			p.Feed.Add(e)
		}
		if records {
			p.Records.Append(p.attemptOf(e, v.Began))
		}
	}
	if !collects {
		p.Feed.Miss(settled)
	}
	p.Records.Wake()
}

// settledEvent returns the event of a settlement that is no dead letter.
func settledEvent(v *leasing.Settlement) wakebelltype.Event {
	e := wakebelltype.Event{Kind: wakebelltype.EventAcked, Took: v.Took}
	switch v.Kind {
	case exchange.Ack:
		switch {
		case v.Expired:
			e.Kind, e.Text = wakebelltype.EventExpired, v.Reason
		case v.Reason != "": // of a rejection
			e.Kind, e.Text = wakebelltype.EventDiscarded, v.Reason
		}
	case exchange.Fail:
		e.Kind, e.Text = wakebelltype.EventDiscarded, v.Reason
	case exchange.Nack:
		e.Kind, e.RetryIn, e.Text = wakebelltype.EventRetried, v.Delay, v.Reason
		switch {
		case v.Panicked:
			e.Kind = wakebelltype.EventCrashed
		case v.Snoozed:
			e.Kind = wakebelltype.EventSnoozed
		}
	case exchange.Release:
		e.Kind = wakebelltype.EventReleased
	case exchange.DeadLetter:
	}
	return e
}

// DeadLettered logs, emits, records and passes on a dead letter.
func (p effects) DeadLettered(d exchange.DeadLettered, by *leasing.Settlement) {
	if by == nil {
		by = &leasing.Settlement{}
	}
	if skipped, ok := p.logLimit.Allow("dead " + p.Source.Name()); ok {
		p.Logger.Warn("timer dead-lettered", "id", d.ID, "reason", d.Reason, "attempt", d.Claims, "entry", d.Entry, "skipped", skipped)
	}
	p.deadHook.Add(observe.DeadTimer{Topic: p.Name(), DeadLettered: d}, &p.Counters)
	e := wakebelltype.Event{
		Kind: wakebelltype.EventDead, At: d.At, ID: d.ID, Attempt: d.Claims, Took: by.Took, Text: d.Reason, Entry: d.Entry,
	}
	if p.Feed.Watched.Load() {
		p.Feed.Add(e)
	}
	if p.Records.Wants(false, false) {
		p.Records.Append(p.attemptOf(e, by.Began))
	}
	p.Records.Wake()
}

// Ended logs, emits and records a delivery that ended without a settlement.
func (p effects) Ended(l *leasing.Lease, end leasing.End) {
	if l.Refused() || end.Kind == wakebelltype.EventCrashed {
		p.unfinished(l)
	}
	e := p.about(l, wakebelltype.Event{Kind: end.Kind, Took: end.Took, Text: end.Why, RetryIn: end.RetryIn})
	emitted, recorded := e, true
	switch end.Kind {
	case wakebelltype.EventLost:
		if skipped, ok := p.logLimit.Allow("lost " + p.Source.Name()); ok {
			p.Logger.Warn("lease lost", "id", l.ID, "attempt", l.Claims, "reason", end.Why, "skipped", skipped)
		}
		emitted.Took, emitted.Text = 0, ""
	case wakebelltype.EventSuperseded, wakebelltype.EventCancelled:
		emitted.Took = 0
	case wakebelltype.EventCrashed:
		recorded = !p.FinalCrashes // otherwise its settlement is recorded
	}
	if p.Feed.Watched.Load() {
		p.Feed.Add(emitted)
	}
	if recorded && p.Records.Wants(false, l.Claims > 1) {
		p.Records.Append(p.attemptOf(e, time.Time{}))
		p.Records.Wake()
	}
}

// unfinished notifies what is kept with a delivery that its handler crashed, or that its ack was
// refused or will be.
func (p effects) unfinished(l *leasing.Lease) {
	if kept, ok := l.Run.(*lease).Kept().(interface{ Unfinished() }); ok {
		p.io.Go(kept.Unfinished)
	}
}

// attemptOf returns the record of the event that ended an attempt, which began at an instant of
// the local clock; zero: the event comes at its end. The source confirms an end later, and after
// an outage much later.
func (p *poller) attemptOf(e wakebelltype.Event, began time.Time) wakebelltype.Attempt {
	started := e.At.Add(-e.Took)
	if !began.IsZero() && !p.clock.source.IsZero() {
		started = p.clock.source.Add(began.Sub(p.clock.local))
	}
	return wakebelltype.Attempt{ID: e.ID, Attempt: e.Attempt, Started: started, Took: e.Took, Outcome: e.Kind, Error: e.Text}
}

// Hung logs a handler that has reached the maximum lease age.
func (p effects) Hung(l *leasing.Lease, age time.Duration) {
	p.Logger.Error("handler ended by the maximum lease age", "id", l.ID, "attempt", l.Claims, "age", age.Round(time.Millisecond), "maximum", p.core.MaxLeaseAge)
}

// Abandoned logs a handler that the drain gives up.
func (p effects) Abandoned(l *leasing.Lease) {
	p.Logger.Error("handler ignores its context and is abandoned", "id", l.ID)
}

// RoleChanged logs the role of this node in the division of the topic.
func (p effects) RoleChanged(role string, nodes int) {
	p.Logger.Debug("role changed", "role", role, "nodes", nodes)
}

// ExchangeFailed logs the first failure of an exchange, and a hundredth of the others.
func (p effects) ExchangeFailed(err error, n int) {
	if errors.Is(err, exchange.ErrStale) {
		p.Logger.Error("exchange refused as stale; continuing under a new incarnation", "err", err)
		return
	}
	if n == 1 || n%100 == 0 {
		p.Logger.Error("exchange failed; the topic backs off", "err", err, "attempt", n)
	}
}

// RecordWith makes a topic record with r, from its first timer on.
func (c *Shared) RecordWith(r *observe.Recorder) {
	counters := &c.Counters
	if c.NoCounts {
		counters = nil
	}
	c.Records = r.Add(c.Source.Name(), c.RecordStore, c.History, counters)
}
