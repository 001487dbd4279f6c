package poller

import (
	"github.com/wakebell/wakebell/actors/records"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

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

// recordedCounts returns what is counted of a topic.
func (c *counters) recordedCounts() records.Counts {
	return records.Counts{
		Handled: c.acked.Load() - c.rejectedAcks.Load(),
		Failed:  c.retried.Load() + c.crashed.Load() + c.finalErrors.Load(),
		Dead:    c.deadLettered.Load(),
	}
}

// RecordWith makes a topic record with r, from its first timer on.
func (c *Shared) RecordWith(r *records.Recorder) {
	var counts func() records.Counts
	if !c.NoCounts {
		counts = c.Counters.recordedCounts
	}
	c.Records = r.Add(c.Source.Name(), c.RecordStore, c.History, counts)
}
