package leasing

import (
	"cmp"
	"errors"
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Override is what an operator has set for a topic on all nodes.
type Override struct {
	Paused bool // claim no timers
	// PausedFor is for how long the pause lasts from the read on, when it ends by itself; 0: until
	// another override is read.
	PausedFor time.Duration
	// Mark is that of the settings that were read, as in exchange.Reply.Control; empty: the
	// source has none.
	Mark string
	// Apply changes the settings of the node; nil: none are overridden.
	Apply func(*Settings)
}

// override is what is known of the override. It decides whether timers may be claimed before
// more is known.
type override struct {
	Override // as last read

	failures  int
	known     bool
	reading   bool // it is being read
	stale     bool // it changed after that read began
	suspends  bool // claims, until the override that a hint announced has been read
	ownPaused bool

	control, noticed string    // mark of the override; of the settings for which it is being read, if an answer said that they had changed
	askAt            time.Time // when to ask whether the settings have changed; zero: claims do

	own *Settings // of the node, which the override changes
}

const (
	// defaultOverrideInterval is the default of Policy.OverrideInterval.
	defaultOverrideInterval = 5 * time.Minute
	// keyedOverrideInterval is its default while limits by key are in force. The read also
	// looks for keys that were not freed, because a peer has removed a timer that held one.
	keyedOverrideInterval = time.Minute
)

// overrideInterval returns about how long after a read of the override the next one is.
func (c *Core) overrideInterval() time.Duration {
	interval := defaultOverrideInterval
	if c.Flow.ByKey() {
		interval = keyedOverrideInterval
	}
	return cmp.Or(c.OverrideInterval, interval)
}

// controlAnswered compares the settings that an answer is about with those that are known,
// and reports whether they have changed. Then the override is read as after a hint, which
// may not have arrived.
func (c *Core) controlAnswered(now time.Time, r *exchange.Reply) bool {
	c.planAsk(now)
	if r.Control == "" || r.Control == c.override.control || !c.Overrides {
		return false
	}
	c.override.noticed = r.Control
	c.suspendClaims(now)
	return true
}

// suspendClaims claims nothing until the override has been read again.
func (c *Core) suspendClaims(now time.Time) {
	c.readOverride(now)
	c.override.suspends = c.override.reading
}

// planAsk decides when to send an exchange that only asks whether the settings have
// changed: while they let the core claim nothing, no other exchange may follow.
func (c *Core) planAsk(now time.Time) {
	c.override.askAt = time.Time{}
	if c.drain == nil && c.Overrides && (c.override.Paused || c.withheld) {
		c.override.askAt = now.Add(backoff.Jitter(c.MaxPollingInterval, 0.5, c.Random()))
	}
}

// mayAsk reports whether it is time for such an exchange on a stream.
func (c *Core) mayAsk(s *Stream, now time.Time) bool {
	return s.number == 0 && !c.override.askAt.IsZero() && !now.Before(c.override.askAt)
}

// readOverride has the override read. Nothing is claimed until it has been read once, because
// the topic may be paused.
func (c *Core) readOverride(now time.Time) {
	if !c.Overrides {
		return
	}
	if c.outage.down { // it is read when Redis is back
		c.agenda[readOverride] = now
		return
	}
	c.agenda[readOverride] = now.Add(backoff.Jitter(c.overrideInterval(), 0.5, c.Random()))
	if c.override.reading {
		c.override.stale = true // the read in progress may be too old
		return
	}
	c.override.reading, c.override.stale = true, false
	c.Effects.ReadOverride()
}

// OverrideRead puts the override in force. An unreadable override changes
// nothing; when Redis is down, it is read again afterwards.
func (c *Core) OverrideRead(now time.Time, o Override, err error) {
	c.override.reading = false
	switch {
	case err == nil:
		c.override.Override, c.override.known, c.override.failures = o, true, 0
		c.override.control = cmp.Or(c.override.noticed, o.Mark)
		if o.Paused && o.PausedFor > 0 { // the read then finds it over, by the clock of the source
			c.agenda.by(readOverride, now.Add(o.PausedFor))
		}
	case errors.Is(err, exchange.ErrUnavailable):
		c.override.failures++
		c.agenda[readOverride] = now.Add(backoff.Jitter(backoff.Exponential(time.Second, c.override.failures, maxErrorDelay), 0.5, c.Random()))
		c.redisDown(now, err)
	default:
		c.override.known = true
		c.override.control = cmp.Or(c.override.noticed, c.override.control)
	}
	c.override.noticed = ""
	c.applySettings(now)
	if c.override.stale {
		c.readOverride(now)
	}
	if c.override.suspends && !c.override.reading {
		c.override.suspends = false
		c.pace.pollWithin(now, 0)
	}
}

// orphans are the remains of timers that no longer exist.
type orphans struct {
	removedAt time.Time // last
	removing  bool
	held      bool // some were left then, because timers must have been lost
}

// orphansEvery is the minimum interval between two collections in a topic.
const orphansEvery = time.Minute

// removeOrphans has the orphans removed that an exchange has noticed.
func (c *Core) removeOrphans(now time.Time) {
	if c.orphans.removing || now.Sub(c.orphans.removedAt) < orphansEvery {
		return
	}
	c.orphans.removing, c.orphans.removedAt = true, now
	c.Effects.RemoveOrphans()
}

// OrphansRemoved notes that orphans have been removed, or could not be.
func (c *Core) OrphansRemoved(swept exchange.Swept, err error) {
	c.orphans.removing = false
	c.Counters.OrphansRemoved.Add(int64(swept.Removed))
	if err == nil {
		c.orphans.held = swept.Held > 0
		c.Counters.OrphansHeld.Store(swept.Held)
	}
}
