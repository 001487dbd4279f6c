package poller

import (
	"time"

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

// emitSettled emits the event of a settlement, except for dead letters.
func (p *poller) emitSettled(v verdict) {
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
		return
	}
	p.emit(v.lease, e)
}

func (p *poller) emitCrashed(l *lease, o Outcome) {
	if p.Feed.Watched.Load() {
		p.emit(l, wakebelltype.Event{Kind: wakebelltype.EventCrashed, Took: p.took(l), Text: o.reason()})
	}
}

// emitLeftToLease emits the event of a failure whose lease is left to expire.
func (p *poller) emitLeftToLease(l *lease, o Outcome) {
	if p.Feed.Watched.Load() {
		in := max(time.Until(l.deadline), 0)
		p.emit(l, wakebelltype.Event{Kind: wakebelltype.EventRetried, Took: p.took(l), RetryIn: in, Text: o.reason()})
	}
}

// took is how long the handler has had a lease, if events are collected.
func (p *poller) took(l *lease) time.Duration {
	if !p.Feed.Collects() {
		return 0
	}
	return time.Since(l.deliveredAt)
}
