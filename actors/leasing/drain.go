package leasing

import (
	"math"
	"time"
)

// drain is the state of a core that claims nothing more. Its phases end with
// the deadline, then with DrainGrace, then with DrainFlush, or as soon as no
// lease is held and no settlement is queued. A poller that only waits for the
// reply to a claim waits for DrainFlush: there is no reply while the source is
// down.
type drain struct {
	phase      drainPhase
	checked    bool     // whether anything is left to do: until then no phase ends
	unfinished []string // ids whose handlers did not return in time
	answered   bool
}

type drainPhase uint8

const (
	running  drainPhase = iota // handlers run
	ending                     // their contexts have ended
	flushing                   // they were abandoned; settlements are in flight
)

// DrainGrace is how long handlers may take to return once their contexts
// have ended with ErrDraining.
const DrainGrace = time.Second

// DrainFlush is how long the last settlements may take after that, and how long a
// drain waits for a reply that may contain leases.
const DrainFlush = 2 * time.Second

// Drain claims nothing more, and lets handlers run until a timeout. Effects.Drained ends it.
func (c *Core) Drain(now time.Time, timeout time.Duration) {
	if c.drain != nil {
		if c.drain.answered { // when a topic is removed after a drain
			c.drain.answered = false
			c.answerDrain()
		}
		return
	}
	c.drain = &drain{}
	c.planAsk(now)
	c.agenda[phase] = now.Add(timeout)
	c.returnUnstarted(now, math.MaxInt) // leases that no handler has begun are released at once
}

// nextPhase begins a phase, which lasts for a time.
func (c *Core) nextPhase(now time.Time, p drainPhase, lasts time.Duration) {
	c.drain.phase, c.agenda[phase] = p, now.Add(lasts)
}

// endDrainPhase ends the phase of a drain that has lasted for long enough.
func (c *Core) endDrainPhase(now time.Time) {
	if c.drain == nil || !c.drain.checked || !c.agenda.due(phase, now) {
		return
	}
	switch c.drain.phase {
	case running:
		for _, s := range c.streams {
			for _, l := range s.held {
				l.end(ErrDraining)
			}
		}
		c.nextPhase(now, ending, DrainGrace)
	case ending:
		c.abandonUnfinished()
		c.nextPhase(now, flushing, DrainFlush)
	case flushing:
		c.answerDrain()
	}
}

// abandonUnfinished gives up handlers that ignore their contexts: their timers
// are released for other nodes, and reported.
func (c *Core) abandonUnfinished() {
	for _, s := range c.streams {
		for len(s.held) > 0 {
			l := s.held[0]
			s.drop(l)
			if l.accepted() {
				c.release(l)
			}
			c.drain.unfinished = append(c.drain.unfinished, l.ID)
			c.Effects.Abandoned(l)
		}
	}
}

// checkDrain ends the drain as soon as nothing is left to do.
func (c *Core) checkDrain(now time.Time) {
	if c.drain == nil || c.drain.answered {
		return
	}
	c.drain.checked = true
	busy, inHand := c.divider.announcing || c.reports != nil && c.reports.sending, false // others take over when they know that this node leaves
	for _, s := range c.streams {
		busy = busy || s.busy()
		inHand = inHand || len(s.held) > 0 || len(s.toSettle) > 0 || s.flight != nil && len(s.flight.Settling) > 0
	}
	switch {
	case inHand:
	case !busy:
		c.answerDrain()
	case c.drain.phase == running:
		c.nextPhase(now, flushing, DrainFlush)
	}
}

// answerDrain reports the end of the drain, once.
func (c *Core) answerDrain() {
	if c.drain.answered {
		return
	}
	c.drain.answered, c.agenda[phase] = true, time.Time{}
	unsettled := 0
	for _, s := range c.streams {
		unsettled += len(s.toSettle)
		if s.flight != nil {
			unsettled += len(s.flight.Settling)
		}
	}
	c.Effects.Drained(c.drain.unfinished, unsettled)
}
