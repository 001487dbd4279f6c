// Package recur computes the instants of recurring schedules, and encodes and decodes
// them in the format of RedBeat.
//
// A [When] is a rule: [Interval], [Crontab] with Celery's semantics, [Cron] with the
// usual ones, or a recurrence rule of RFC 5545 ([RRuleText]). An [Entry] is a
// schedule as it is stored in a Redis hash: the fields definition and meta of
// RedBeat, and a third field of Wakebell. [Entry.Plan] decides what to do with an
// entry at an instant.
//
// The package uses neither a clock nor Redis.
package recur

import (
	"errors"
	"time"
)

// When is the rule of a schedule.
type When interface {
	// Next returns the first instant after last, which is the previous instant or
	// the start of the schedule; zero: there is none.
	Next(last time.Time) time.Time

	// Latest returns the last instant after last and not after now; zero: there is
	// none.
	Latest(last, now time.Time) time.Time
}

// ErrSyntax is wrapped by errors about an invalid rule or entry.
var ErrSyntax = errors.New("cannot be read")

// wallRule is a rule of local (wall clock) times, which are represented as instants of
// UTC.
type wallRule interface {
	// next returns the first time after wall; zero: there is none.
	next(wall time.Time, w *work) time.Time
}

// walled is a wallRule in a time zone.
type walled struct {
	rule wallRule
	zone zone
	work *work
}

// Next skips wall times that resolve to an earlier instant: those of the second pass
// of an overlap, and all but the first of a gap.
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

// Latest searches back from now in growing windows, so that it does not walk over a
// long downtime of a frequent rule.
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

// missed returns the last instants after last and not after now, oldest first, at most
// limit of them.
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

// since returns an instant from which the rule has at least n instants until now, or
// last.
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
