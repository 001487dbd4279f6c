package poller

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// breakerStatus is what operators see of a circuit breaker that is not closed.
type breakerStatus struct {
	state        guard.State
	since, until time.Time // when it opened first, and when it tries the next timer
	reason       string
}

// maxBreakerReason bounds the reason in bytes.
const maxBreakerReason = 256

// noteBreaker notes a change of the breaker for operators. A test that fails or says
// nothing keeps the instant at which the breaker opened.
func (p *poller) noteBreaker(to guard.State, reason string) {
	if to == guard.Closed {
		p.breakerNow.Store(nil)
		return
	}
	now := breakerStatus{state: to, since: time.Now(), until: p.breaker.Until()}
	if before := p.breakerNow.Load(); before != nil {
		now.since, now.reason = before.since, before.reason
		if to == guard.HalfOpen {
			now.until = before.until
		}
	}
	if reason != "" {
		now.reason = strings.Clone(text.Cut(reason, maxBreakerReason))
	}
	p.breakerNow.Store(&now)
}

// breakerAllows reports whether the circuit breaker permits a claim: none while it is
// open, and one timer at a time while it is half-open.
func (p *poller) breakerAllows() bool {
	if p.breaker == nil {
		return true
	}
	switch p.breaker.State(time.Now()) {
	case guard.Open:
		return false
	case guard.HalfOpen:
		return !p.testing()
	default:
		return true
	}
}

// testing reports whether the claim that decides about a half-open breaker is in
// flight, or its timer is held.
func (p *poller) testing() bool {
	generation := p.breaker.Generation()
	for _, s := range p.streams {
		if s.flight != nil && s.flight.request.Want > 0 && s.flight.generation == generation {
			return true
		}
		for _, l := range s.held {
			if l.generation == generation {
				return true
			}
		}
	}
	return false
}

// countOutcome counts the outcome of a delivery for the breaker and for adaptive
// concurrency. An outcome that says nothing about the handler does not count: a timer
// that was released, cancelled or lost, and a body that cannot be decoded.
func (p *poller) countOutcome(l *lease, o Outcome) {
	if o.kind == released || o.kind == skipped || o.kind == undeliverable {
		return
	}
	p.adaptConcurrency(l, o)
	if p.breaker == nil {
		return
	}
	change, changed := p.breaker.Record(l.generation, time.Now(), o.kind != succeeded)
	if changed {
		p.breakerChanged(change, o.reason)
	}
}

// watchBreaker notes that an open breaker has become half-open, which no outcome
// causes.
func (p *poller) watchBreaker(now time.Time) {
	if p.breaker != nil && p.breakerState == guard.Open && p.breaker.State(now) == guard.HalfOpen {
		p.breakerChanged(guard.Change{To: guard.HalfOpen}, "")
	}
}

// breakerChanged reports a change of the breaker and applies it. failure is the reason of
// the failure that opened it.
func (p *poller) breakerChanged(change guard.Change, failure string) {
	p.breakerState = change.To
	about, reason := change.To.String(), ""
	switch change.To {
	case guard.Open:
		p.Counters.BreakerOpen.Store(1)
		p.Counters.BreakerOpened.Add(1)
		p.Logger.Warn("circuit breaker opened; the topic is paused on this node",
			"failures", change.Failed, "deliveries", change.Delivered, "duration", p.Breaker.OpenFor, "err", failure)
		reason = fmt.Sprintf("%d of %d deliveries failed: %s", change.Failed, change.Delivered, failure)
		about = fmt.Sprintf("open for %v: %s", p.Breaker.OpenFor, reason)
		p.returnUnstarted(math.MaxInt32)
	case guard.HalfOpen:
		p.Logger.Info("circuit breaker half-open; one timer is tried")
	case guard.Closed:
		p.Counters.BreakerOpen.Store(0)
		p.Logger.Info("circuit breaker closed")
		p.pace.pollWithin(time.Now(), 0)
	}
	p.noteBreaker(change.To, reason)
	if p.Feed.Watched.Load() {
		p.Feed.Add(wakebelltype.Event{Kind: wakebelltype.EventBreaker, At: p.clock.now(), Text: about})
	}
}
