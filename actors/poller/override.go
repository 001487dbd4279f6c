package poller

import (
	"cmp"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages/exchange"
)

// ClusterOverride is what an operator has set for a topic on all nodes.
type ClusterOverride struct {
	Paused bool // claim no timers
	// Mark is that of the settings that were read, as in exchange.Reply.Control; empty: the
	// source has none.
	Mark string
	// Apply changes the settings of the node; nil: none are overridden.
	Apply func(*Settings)
}

// overrideRead brings the override that was read to the poller.
type overrideRead struct {
	incarnation uint64
	override    ClusterOverride
	err         error
}

const (
	// defaultOverrideInterval is the default of Topic.OverrideInterval.
	defaultOverrideInterval = 5 * time.Minute
	// keyedOverrideInterval is its default while limits by key are in force. The read also
	// looks for keys that were not freed, because a peer has removed a timer that held one.
	keyedOverrideInterval = time.Minute
)

// overrideInterval returns about how long after a read of the override the next one is.
func (p *poller) overrideInterval() time.Duration {
	interval := defaultOverrideInterval
	if p.Flow.ByKey() {
		interval = keyedOverrideInterval
	}
	return cmp.Or(p.OverrideInterval, interval)
}

// controlAnswered compares the settings that an answer is about with those that are known,
// and reports whether they have changed. Then the override is read as after a hint, which
// may not have arrived.
func (p *poller) controlAnswered(r *exchange.Reply) bool {
	p.planAsk()
	if r.Control == "" || r.Control == p.control || p.ReadOverride == nil {
		return false
	}
	p.noticed = r.Control
	p.suspendClaims()
	return true
}

// suspendClaims claims nothing until the override has been read again.
func (p *poller) suspendClaims() {
	p.readOverride()
	p.claimsSuspended = p.overrideReading
}

// planAsk decides when to send an exchange that only asks whether the settings have
// changed: while they let the poller claim nothing, no other exchange may follow.
func (p *poller) planAsk() {
	p.askAt = time.Time{}
	if p.drain == nil && p.ReadOverride != nil && (p.override.Paused || p.withheld) {
		p.askAt = time.Now().Add(backoff.Jitter(p.MaxPollingInterval, 0.5, p.random()))
	}
}

// mayAsk reports whether it is time for such an exchange on a stream.
func (p *poller) mayAsk(s *stream, now time.Time) bool {
	return s.number == 0 && !p.askAt.IsZero() && !now.Before(p.askAt)
}

// readOverride reads the override in the background. Nothing is claimed until it
// has been read once, because the topic may be paused.
func (p *poller) readOverride() {
	if p.ReadOverride == nil {
		return
	}
	if p.unavailable { // it is read when Redis is back
		p.overrideAt = time.Now()
		return
	}
	p.overrideAt = time.Now().Add(backoff.Jitter(p.overrideInterval(), 0.5, p.random()))
	if p.overrideReading {
		p.overrideStale = true // the read in progress may be too old
		return
	}
	p.overrideReading, p.overrideStale = true, false
	ctx, read, tell, incarnation := p.queue.ctx, p.ReadOverride, p.queue.toPoller, p.incarnation
	p.io.Go(func() {
		order, err := host.Recovered("reading the override", func() (ClusterOverride, error) { return read(ctx) })
		tell(overrideRead{incarnation: incarnation, override: order, err: err})
	})
}

// applyOverride puts the override in force. An unreadable override changes
// nothing; when Redis is down, it is read again afterwards.
func (p *poller) applyOverride(m overrideRead) {
	p.overrideReading = false
	switch {
	case m.err == nil:
		p.override, p.overrideKnown, p.overrideFailures = m.override, true, 0
		p.control = cmp.Or(p.noticed, m.override.Mark)
	case errors.Is(m.err, exchange.ErrUnavailable):
		p.overrideFailures++
		p.overrideAt = time.Now().Add(backoff.Jitter(backoff.Exponential(time.Second, p.overrideFailures, maxErrorDelay), 0.5, p.random()))
		p.redisDown(m.err)
	default:
		p.overrideKnown = true
		p.control = cmp.Or(p.noticed, p.control)
		p.Logger.Warn("override not readable; settings stay as they are", "err", m.err)
	}
	p.noticed = ""
	p.applySettings()
	if p.overrideStale {
		p.readOverride()
	}
	if p.claimsSuspended && !p.overrideReading {
		p.claimsSuspended = false
		p.pace.pollWithin(time.Now(), 0)
	}
}

// orphansEvery is the minimum interval between two collections in a topic.
const orphansEvery = time.Minute

// collectOrphans removes, in the background, the remains of timers that no longer
// exist.
func (p *poller) collectOrphans() {
	if p.collectingOrphans || time.Since(p.orphansAt) < orphansEvery {
		return
	}
	p.collectingOrphans, p.orphansAt = true, time.Now()
	ctx, source, tell, incarnation := p.queue.ctx, p.Source, p.queue.toPoller, p.incarnation
	p.io.Go(func() {
		swept, err := host.Recovered("heal", func() (exchange.Swept, error) { return source.RemoveOrphans(ctx) })
		tell(orphansCollected{incarnation: incarnation, swept: swept, err: err})
	})
}

func (p *poller) orphansCollected(m orphansCollected) {
	p.collectingOrphans = false
	p.Counters.OrphansRemoved.Add(int64(m.swept.Removed))
	if m.err != nil {
		p.Logger.Warn("orphans not removed; retried later", "err", m.err)
		return
	}
	p.Counters.OrphansHeld.Store(m.swept.Held)
	if m.swept.Removed > 0 {
		p.Logger.Info("orphans removed", "count", m.swept.Removed)
	}
	if m.swept.Mended > 0 {
		p.Logger.Warn("deadlines of messages were lost; these messages are delivered again", "count", m.swept.Mended)
	}
	if m.swept.Held > 0 { // repeated about every minute
		p.Logger.Error("timers were lost; their payloads stay; wakebell repair shows what can be restored",
			"key", m.swept.Key, "count", m.swept.Held, "payloads", m.swept.Of)
	}
}
