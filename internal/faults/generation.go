package faults

import (
	"slices"
	"time"
)

// generation is one of the timers that had the same id.
type generation struct {
	schedules []Call // the attempts to schedule it, in the order of their answers
	cancels   []Call // of this timer
	redrives  []Call // of its dead letter
	runs      []*Run

	acknowledged bool // one of schedules was acknowledged
	ended        bool // the timer was replaced or cancelled, or may have been
}

func (t *Timer) generations() []*generation {
	byNumber := map[int]*generation{}
	var all []*generation
	get := func(n int) *generation {
		g := byNumber[n]
		if g == nil {
			g = &generation{}
			byNumber[n] = g
			all = append(all, g)
		}
		return g
	}
	for _, c := range t.Calls {
		g := get(c.Generation)
		if c.Kind == CallRedrive {
			g.redrives = append(g.redrives, c)
			continue
		}
		if c.Kind == CallCancel {
			g.cancels = append(g.cancels, c)
			g.ended = g.ended || c.unsure || c.Found != FoundNothing
			continue
		}
		g.schedules = append(g.schedules, c)
		g.acknowledged = g.acknowledged || c.Err == nil
	}
	for _, r := range t.Runs {
		g := get(t.generationOf(r))
		g.runs = append(g.runs, r)
	}
	return all
}

// generationOf finds the generation of a run by the instant that Redis answered,
// because a reschedule keeps the body, which contains the generation. If a call may
// have run twice, only its second answer is known.
func (t *Timer) generationOf(r *Run) int {
	unsure := 0
	for _, c := range t.Calls {
		switch {
		case c.Due.Equal(r.Activation) && c.Generation >= r.Generation: // two generations may be due in the same µs
			return c.Generation
		case c.Kind == CallReschedule && c.unsure && c.Called.Before(r.Delivered):
			unsure = c.Generation
		}
	}
	return max(unsure, r.Generation)
}

// replaces reports whether g replaced the previous generation, or may have.
func (g *generation) replaces() bool {
	return slices.ContainsFunc(g.schedules, func(c Call) bool { return c.unsure || c.Found != FoundNothing })
}

// redriven reports whether its dead letter was redriven between two deliveries.
func (g *generation) redriven(after, before time.Time) bool {
	return slices.ContainsFunc(g.redrives, func(c Call) bool { return c.Returned.After(after) && c.Called.Before(before) })
}

func (g *generation) cancelledBefore(c Call) bool {
	return slices.ContainsFunc(g.cancels, func(b Call) bool {
		return b.Called.Before(c.Called) && (b.unsure || b.Found != FoundNothing)
	})
}

// begun returns the start of the first attempt to schedule it; zero: there was none.
func (g *generation) begun() (at time.Time) {
	for i, c := range g.schedules {
		if i == 0 || c.Called.Before(at) {
			at = c.Called
		}
	}
	return at
}

// earliest returns the earliest instant of delivery: the one that Redis answered, or
// else the one that the caller computed, in µs as Redis counts. The store's clock has this resolution.
func (g *generation) earliest(resolution time.Duration) time.Time {
	var earliest time.Time
	for i, c := range g.schedules {
		at := c.Earliest.Add(time.Microsecond - resolution) // a delay begins at the last tick of the store's clock
		if len(g.schedules) == 1 && !c.unsure && c.Due.After(at) {
			at = c.Due
		}
		if i == 0 || at.Before(earliest) {
			earliest = at
		}
	}
	return earliest.Truncate(time.Microsecond)
}
