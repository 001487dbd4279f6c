package poller

import (
	"fmt"
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
func (p *poller) noteBreaker(to guard.State, until time.Time, reason string) {
	if to == guard.Closed {
		p.breakerNow.Store(nil)
		return
	}
	now := breakerStatus{state: to, since: time.Now(), until: until}
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

// BreakerChanged logs and emits a change of the breaker.
func (p effects) BreakerChanged(change guard.Change, until time.Time, failure string) {
	about, reason := change.To.String(), ""
	switch change.To {
	case guard.Open:
		p.Logger.Warn("circuit breaker opened; the topic is paused on this node",
			"failures", change.Failed, "deliveries", change.Delivered, "duration", p.Breaker.OpenFor, "err", failure)
		reason = fmt.Sprintf("%d of %d deliveries failed: %s", change.Failed, change.Delivered, failure)
		about = fmt.Sprintf("open for %v: %s", p.Breaker.OpenFor, reason)
	case guard.HalfOpen:
		p.Logger.Info("circuit breaker half-open; one timer is tried")
	case guard.Closed:
		p.Logger.Info("circuit breaker closed")
	}
	p.noteBreaker(change.To, until, reason)
	if p.Feed.Watched.Load() {
		p.Feed.Add(wakebelltype.Event{Kind: wakebelltype.EventBreaker, At: p.clock.now(), Text: about})
	}
}
