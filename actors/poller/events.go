package poller

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// What a poller tells of its leases, if somebody watches the topic. Where many
// leases pass, the caller asks for that once.

// clock is the source's clock at a moment of the local one.
type clock struct{ source, local time.Time }

func (c clock) now() time.Time {
	if c.source.IsZero() {
		return c.source
	}
	return c.source.Add(time.Since(c.local))
}

func (p *poller) emit(l *lease, e exchange.Event) {
	e.At, e.ID, e.Attempt = p.clock.now(), l.ID, l.Claims
	p.Feed.Add(e)
}

func (p *poller) emitKind(l *lease, kind exchange.EventKind) {
	if p.Feed.Watched.Load() {
		p.emit(l, exchange.Event{Kind: kind})
	}
}

// tellSettled tells what was settled, but for what was buried.
func (p *poller) emitSettled(v verdict) {
	e := exchange.Event{Kind: exchange.EventAcked, Took: v.took}
	switch v.kind {
	case exchange.Ack:
		if v.reason != "" { // only what was rejected has one
			e.Kind, e.Text = exchange.EventDiscarded, v.reason
		}
	case exchange.Fail:
		e.Kind, e.Text = exchange.EventDiscarded, v.reason
	case exchange.Nack:
		e.Kind, e.RetryIn, e.Text = exchange.EventRetried, v.delay, v.reason
	case exchange.Release:
		e.Kind = exchange.EventReleased
	case exchange.Bury:
		return
	}
	p.emit(v.lease, e)
}

func (p *poller) emitCrashed(l *lease, o Outcome) {
	if p.Feed.Watched.Load() {
		p.emit(l, exchange.Event{Kind: exchange.EventCrashed, Took: p.took(l), Text: o.reason()})
	}
}

// tellLeft tells of a failure that is left to its lease.
func (p *poller) emitLeftToLease(l *lease, o Outcome) {
	if p.Feed.Watched.Load() {
		in := max(time.Until(l.deadline), 0)
		p.emit(l, exchange.Event{Kind: exchange.EventRetried, Took: p.took(l), RetryIn: in, Text: o.reason()})
	}
}

// took is how long a lease was with its handler, if somebody watches.
func (p *poller) took(l *lease) time.Duration {
	if !p.Feed.Watched.Load() {
		return 0
	}
	return time.Since(l.deliveredAt)
}
