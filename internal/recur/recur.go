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
	// twice makes the rule apply to both passes of local times that the clock repeats;
	// else to the first one.
	twice bool
	work  *work
}

// Next walks over the periods of the zone. A time in a gap resolves to the end of the
// gap, unless gaps are skipped.
func (w walled) Next(last time.Time) time.Time {
	if w.zone.in == time.UTC {
		return w.rule.next(last.UTC(), w.work)
	}
	s := w.zone.span(last)
	from := s.wall(last)
	if shown := w.zone.shown(last); !w.twice && shown.After(from) {
		from = shown
	}
	for wall := w.rule.next(from, w.work); !wall.IsZero() || w.twice; {
		if at := s.instant(wall); !wall.IsZero() && (s.end.IsZero() || at.Before(s.end)) {
			return at
		}
		if s.end.IsZero() {
			break
		}
		again := w.twice && s.wall(s.end).Sub(from) < farthestOffset // the clock may be put back to before from
		if far := wall.Add(-2 * farthestOffset); !again && far.After(s.end) {
			s = w.zone.span(far) // no time before it matches
			continue
		}
		next := w.zone.span(s.end)
		begin := next.wall(s.end)
		switch {
		case !wall.IsZero() && wall.Before(begin) && !w.zone.skipGaps:
			return s.end.UTC()
		case !wall.IsZero() && wall.Before(begin), w.twice && !begin.After(from):
			from = begin.Add(-time.Nanosecond)
			wall = w.rule.next(from, w.work)
		case wall.IsZero():
			return time.Time{}
		}
		s = next
	}
	return time.Time{}
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
		return rule.since(last, now, int64(n))
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
