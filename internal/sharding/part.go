package sharding

import "time"

// Part is which part of the limits over all nodes a physical topic of a topic has. The zero
// value is the whole.
type Part struct {
	Role  Role
	Of    int // the physical topics with that role, which have equal parts; 0: 1
	Index int // of this one among them

	// Leaving is how many physical topics timers leave, and Busy how many of their timers
	// were in flight a moment ago; of an Arriving one.
	Leaving, Busy int
}

// Role is whether a physical topic has timers.
type Role uint8

// Roles.
const (
	Settled  Role = iota // the timers of the topic belong there
	Leaving              // timers move from there, or will soon
	Arriving             // timers move to there, or will soon
	Resting              // timers have left it: it is handled for clients of an earlier version
)

// Parts returns the parts of the physical topics that nodes handle at an instant; nil for a
// topic with one.
func (l Layout) Parts(topic string, now time.Time) map[string]Part {
	if l.Plain() && !l.Lingers(now) {
		return nil
	}
	parts := map[string]Part{}
	add := func(role Role, n, leaving int) {
		for i, name := range Names(topic, n) {
			if _, known := parts[name]; !known {
				parts[name] = Part{Role: role, Of: n, Index: i, Leaving: leaving}
			}
		}
	}
	switch moving := l.Moving && l.From > 0 && l.From != l.Count(); {
	case moving:
		add(Leaving, l.From, 0)
		add(Arriving, l.Count(), l.From)
	case l.To > 0 && l.To != l.Count():
		add(Leaving, l.Count(), 0)
		add(Arriving, l.To, l.Count())
	default:
		add(Settled, l.Count(), 0)
	}
	for _, name := range l.Polled(topic, now) {
		if _, known := parts[name]; !known {
			parts[name] = Part{Role: Resting}
		}
	}
	return parts
}

// Share returns the part of a number that physical topics have together: while timers move,
// half for those that they leave, and what these do not use for the others. 0 means no limit,
// and negative that the physical topic must not claim timers.
func (p Part) Share(limit int) int {
	of := max(p.Of, 1)
	switch {
	case limit == 0:
		return 0
	case p.Role == Resting:
		return -1
	case p.Role == Leaving:
		return max(limit/2/of, 1)
	case p.Role != Arriving:
		return max(limit/of, 1)
	}
	leaving := Part{Role: Leaving, Of: p.Leaving}.Share(limit) * p.Leaving
	rest := limit - max(leaving, p.Busy)
	share := rest / of
	if p.Index < rest%of {
		share++
	}
	if share <= 0 {
		return -1
	}
	return share
}

// Slower returns by how many times a physical topic is slower than the rate of the topic.
func (p Part) Slower() int {
	if p.Role == Leaving || p.Role == Arriving {
		return 2 * max(p.Of, 1)
	}
	return max(p.Of, 1)
}
