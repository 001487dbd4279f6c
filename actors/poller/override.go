package poller

import (
	"cmp"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Order is what operators ordered of a topic, for all nodes that handle it.
type ClusterOverride struct {
	Paused bool // take no timers
	// Override changes the settings of the node; nil: it does not.
	Apply func(*Settings)
}

// ordered brings what was read to the poller.
type overrideRead struct {
	incarnation uint64
	override    ClusterOverride
	err         error
}

// readOrderEvery is the default of Topic.OrderEvery.
const defaultOverrideInterval = 5 * time.Minute

// readOrder reads what is ordered, in the background. Until it is known for the
// first time nothing is claimed, for the topic may be paused.
func (p *poller) readOverride() {
	if p.ReadOverride == nil {
		return
	}
	if p.unavailable { // it is read when Redis is back
		p.overrideAt = time.Now()
		return
	}
	p.overrideAt = time.Now().Add(host.Jitter(cmp.Or(p.OverrideInterval, defaultOverrideInterval), 0.5, p.random()))
	if p.overrideReading {
		p.overrideStale = true // what is being read may be from before
		return
	}
	p.overrideReading, p.overrideStale = true, false
	ctx, read, tell, incarnation := p.queue.ctx, p.ReadOverride, p.queue.toPoller, p.incarnation
	p.io.Go(func() {
		order, err := host.Recovered("reading what is ordered", func() (ClusterOverride, error) { return read(ctx) })
		tell(overrideRead{incarnation: incarnation, override: order, err: err})
	})
}

// obey takes what was read. What cannot be read changes nothing; where Redis is
// down, it is read again when it is back.
func (p *poller) applyOverride(m overrideRead) {
	p.overrideReading = false
	switch {
	case m.err == nil:
		p.override, p.overrideKnown, p.overrideFailures = m.override, true, 0
	case errors.Is(m.err, exchange.ErrUnavailable):
		p.overrideFailures++
		p.overrideAt = time.Now().Add(host.Jitter(host.ExponentialDelay(time.Second, p.overrideFailures, maxErrorDelay), 0.5, p.random()))
		p.redisDown(m.err)
	default:
		p.overrideKnown = true
		p.Logger.Warn("what is ordered of the topic cannot be read; it goes on as before", "err", m.err)
	}
	p.applySettings()
	if p.overrideStale {
		p.readOverride()
	}
	if p.claimsSuspended && !p.overrideReading {
		p.claimsSuspended = false
		p.pace.pollWithin(time.Now(), 0)
	}
}
