// Package recur is the calendar of recurring schedules: which instants a
// schedule has, and the bytes in which RedBeat keeps it.
//
// A [When] is a rule of instants: [Interval], [Crontab] as Celery reads it,
// [Cron] as everybody else does, [RRule]. An [Entry] is a schedule as its hash
// in Redis has it: the definition and the meta that RedBeat reads, and a third
// field that is ours. [Entry.Plan] says what is to be done with it at an
// instant.
//
// The package reads no clock and speaks to nobody.
package recur

import (
	"errors"
	"time"
)

// When is a rule of instants.
type When interface {
	// Next is the first instant after last, which is the instant before it, or
	// when the schedule began; zero: there is none.
	Next(last time.Time) time.Time

	// Latest is the last instant after last and not after now; zero: there is
	// none.
	Latest(last, now time.Time) time.Time
}

// ErrSyntax is wrapped by errors about a rule or an entry that cannot be read.
var ErrSyntax = errors.New("cannot be read")

// wallRule is a rule of the times of day that a clock on a wall shows, written
// as instants of UTC.
type wallRule interface {
	// next is the first after wall; zero: there is none.
	next(wall time.Time, w *work) time.Time
}

// walled is a wallRule in a time zone.
type walled struct {
	rule wallRule
	zone zone
	work *work
}

// Next skips wall times that resolve to an instant that has been: those of the
// second pass of an overlap, and all but the first of a gap.
func (w walled) Next(last time.Time) time.Time {
	for wall := w.zone.wall(last); ; {
		if wall = w.rule.next(wall, w.work); wall.IsZero() {
			return time.Time{}
		}
		if at := w.zone.instant(wall); at.After(last) {
			return at
		}
	}
}

// Latest looks back from now in windows that grow, so that a long downtime of
// a frequent rule costs no walk over all of it.
func (w walled) Latest(last, now time.Time) time.Time {
	for window := time.Minute; ; window *= 4 {
		from := now.Add(-window)
		whole := !from.After(last) || window < 0
		if whole {
			from = last
		}
		latest := time.Time{}
		for at := w.Next(from); !at.IsZero() && !at.After(now); at = w.Next(at) {
			latest = at
		}
		if whole || !latest.IsZero() {
			return latest
		}
	}
}

// missed are the last instants after last and not after now, oldest first, at
// most limit of them.
func missed(w When, last, now time.Time, limit int) []time.Time {
	var all []time.Time
	from := last
	if limit > 0 {
		from = since(w, last, now, limit)
	}
	for at := w.Next(from); !at.IsZero() && !at.After(now); at = w.Next(at) {
		if all = append(all, at); len(all) > limit {
			all = all[1:]
		}
	}
	return all
}

// since is an instant from which on the rule has at least n instants until now,
// or last.
func since(w When, last, now time.Time, n int) time.Time {
	switch rule := w.(type) {
	case Interval:
		if rule.Relative && rule.Every >= time.Minute {
			if at := rule.near(last, now, n); at.After(rule.Next(last)) {
				return at
			}
		} else if steps := rule.steps(last, now) - int64(n); steps > 0 {
			return last.Add(time.Duration(steps) * rule.Every)
		}
	case walled:
		for window := time.Minute; window > 0 && now.Add(-window).After(last); window *= 2 {
			from, found := now.Add(-window), 0
			for at := rule.Next(from); !at.IsZero() && !at.After(now); at = rule.Next(at) {
				found++
			}
			if found >= n {
				return from
			}
		}
	}
	return last
}
