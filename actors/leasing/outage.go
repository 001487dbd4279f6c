package leasing

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// outage decides whether anything may be sent.
type outage struct {
	// While down is set, Redis is down and the core sends only what the supervisor requests.
	// probing is set while such a request is in flight.
	down, probing bool
	// heldAt is when down was set last. Answers to requests that were sent before do not say
	// that Redis is back.
	heldAt time.Time
}

// Hold makes the core send nothing until Probe or Resume.
func (c *Core) Hold(now time.Time) { c.outage.down, c.outage.heldAt = true, now }

// redisDown reports that Redis is down and waits for the supervisor.
func (c *Core) redisDown(now time.Time, err error) {
	c.outage.probing = false
	c.Hold(now)
	c.Effects.Tell(Unavailable, err)
}

// redisAnswered notes that Redis answers a flight, even with an error of this topic alone. In
// an outage many answers to earlier requests may be on their way, mainly with many topics on a
// busy machine: each would wake up all topics.
func (c *Core) redisAnswered(f *Flight) {
	if (c.outage.down || c.outage.probing) && f.Sent.After(c.outage.heldAt) {
		c.outage.down, c.outage.probing = false, false
		c.Effects.Tell(Available, nil)
	}
}

// redisFailed processes the failure of a flight.
func (c *Core) redisFailed(now time.Time, f *Flight, err error) {
	if errors.Is(err, exchange.ErrUnavailable) {
		c.redisDown(now, err)
		return
	}
	c.redisAnswered(f)
}

// Probe tries Redis on behalf of all topics of the shard: with an exchange that
// waits, or else with an empty one. It cannot while all streams wait for answers to
// requests from before the outage.
func (c *Core) Probe() {
	c.outage.probing = true
	for _, s := range c.streams {
		if s.waiting || !s.retryAt.IsZero() {
			c.transmit(s)
			return
		}
	}
	for _, s := range c.streams {
		if !s.busy() {
			c.send(s, &Flight{stream: s})
			return
		}
	}
	c.outage.probing = false
	c.Effects.Tell(Unprobed, nil)
}

// Resume continues after an outage, at a random moment within a span, so that
// thousands of topics do not resume at the same time.
func (c *Core) Resume(now time.Time, within time.Duration) {
	c.outage.down = false
	at := now.Add(time.Duration(float64(within) * c.Random()))
	c.pace.requestedAt = earlier(c.pace.requestedAt, at)
	if next := c.agenda[readOverride]; !next.IsZero() && next.Before(at) {
		c.agenda[readOverride] = at
	}
	for _, s := range c.streams {
		if s.waiting {
			s.waiting, s.retryAt = false, at
		}
	}
}
