package leasing

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// longRun is how long a handler runs before it is reported to operators.
	longRun = 10 * time.Second
	// longRunPause is how long the core waits before it looks again: each look goes through
	// all leases.
	longRunPause = 5 * time.Second
	// maxLongRuns bounds the handlers that are reported.
	maxLongRuns = 10
)

// longRuns knows the handlers that run for long.
type longRuns struct {
	known   []wakebelltype.LongRun // the longest first
	changes int
}

// expectLongRun has the leases looked at when one that is delivered now would run for long,
// unless they are looked at before.
func (c *Core) expectLongRun(now time.Time) {
	if c.agenda[watch].IsZero() {
		c.agenda[watch] = now.Add(longRun)
	}
}

// watchRuns notes the handlers that run for long, when there may be others than before.
func (c *Core) watchRuns(now time.Time) {
	if !c.agenda.due(watch, now) {
		return
	}
	c.agenda[watch] = time.Time{}
	var long []*Lease // by deliveredAt
	for _, s := range c.streams {
		for _, l := range s.held {
			switch begun := l.begun(); {
			case l.early:
			case now.Sub(l.deliveredAt) < longRun:
				c.agenda.by(watch, l.deliveredAt.Add(longRun))
			case begun:
				c.agenda.by(watch, now)
				at, _ := slices.BinarySearchFunc(long, l, func(a, b *Lease) int { return a.deliveredAt.Compare(b.deliveredAt) })
				if at < maxLongRuns {
					long = slices.Insert(long[:min(len(long), maxLongRuns-1)], at, l)
				}
			default: // it waits for a handler
				c.agenda.by(watch, now)
			}
		}
	}
	c.agenda[watch] = later(c.agenda[watch], now.Add(longRunPause))
	c.noteLongRuns(long)
}

func (c *Core) noteLongRuns(leases []*Lease) {
	runs := make([]wakebelltype.LongRun, len(leases))
	for i, l := range leases {
		runs[i] = wakebelltype.LongRun{ID: l.ID, Attempt: l.Claims, Since: l.deliveredAt}
	}
	if !slices.Equal(runs, c.longRuns.known) {
		c.longRuns.known = runs
		c.longRuns.changes++
		c.Counters.LongRuns.Store(&runs)
	}
}
