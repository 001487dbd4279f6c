package recur

import (
	"fmt"
	"iter"
	"math"
	"time"
)

// Interval is a rule whose instants are Every apart, counted from the last one.
type Interval struct {
	Every time.Duration // whole microseconds, above 0
	// Relative makes the instants whole days, hours or minutes of local time if Every
	// is at least a day, an hour or a minute.
	Relative bool
	Zone     *time.Location // of the days and hours; nil: UTC
}

// MaxEvery is the longest supported interval.
const MaxEvery = 100 * 365 * 24 * time.Hour

// wholeDay is a day of local time without a change of the clock.
const wholeDay = daySeconds * time.Second

// intervalOf returns the interval of a number of seconds.
func intervalOf(seconds float64, relative bool, in *time.Location) (Interval, error) {
	us := math.RoundToEven(seconds * 1e6)
	if !(us >= 1) || us > float64(MaxEvery.Microseconds()) { // NaN is not >= 1
		return Interval{}, fmt.Errorf("interval: %w: %v seconds, want 0.000001 to %.0f", ErrSyntax, seconds, MaxEvery.Seconds())
	}
	return Interval{Every: time.Duration(us) * time.Microsecond, Relative: relative, Zone: in}, nil
}

// unit returns the duration of which the instants are multiples in local time; 0: none.
func (i Interval) unit() time.Duration {
	switch {
	case !i.Relative || i.Every < time.Minute:
		return 0
	case i.Every < time.Hour:
		return time.Minute
	case i.Every < wholeDay:
		return time.Hour
	default:
		return wholeDay
	}
}

func (i Interval) zone() zone {
	if i.Zone == nil {
		return zone{in: time.UTC}
	}
	return zone{in: i.Zone}
}

// Next returns last + Every. Of a relative interval, whole days are added in local
// time, and the result begins the day; otherwise the result is the whole hour or minute
// up to last + Every, or the next one if the clock skips that or it is not after last.
func (i Interval) Next(last time.Time) time.Time {
	switch unit := i.unit(); unit {
	case 0:
		return last.Add(i.Every)
	case wholeDay:
		return i.nextDay(last)
	default:
		return i.nextWhole(last, unit)
	}
}

func (i Interval) nextDay(last time.Time) time.Time {
	z := i.zone()
	for day := midnight(z.wall(last).Add(i.Every)); ; day = day.Add(wholeDay) {
		if at := z.instant(day); at.After(last) { // it is before if the clock repeats midnight
			return at
		}
	}
}

func (i Interval) nextWhole(last time.Time, unit time.Duration) time.Time {
	z := i.zone()
	to := last.Add(i.Every)
	s := z.span(to)
	at := s.instant(s.wall(to).Truncate(unit))
	if s.has(at) {
		return z.afterLast(at, last, unit)
	}
	// The whole hour is before the last change of the clock.
	before := z.span(s.start.Add(-time.Nanosecond))
	if at := before.instant(s.wall(to).Truncate(unit)); before.has(at) {
		return z.afterLast(at, last, unit)
	}
	return z.nextWhole(to, unit)
}

// afterLast returns an instant, or the first whole unit after last if that is later.
func (z zone) afterLast(at, last time.Time, unit time.Duration) time.Time {
	if at.After(last) {
		return at
	}
	return z.nextWhole(last, unit)
}

// nextWhole returns the first whole minute or hour of local time after an instant.
func (z zone) nextWhole(after time.Time, unit time.Duration) time.Time {
	s := z.span(after)
	for wall := s.wall(after).Truncate(unit).Add(unit); ; {
		if at := s.instant(wall); s.end.IsZero() || at.Before(s.end) {
			return at
		}
		next := z.span(s.end)
		wall = next.wall(s.end.Add(-time.Nanosecond)).Truncate(unit).Add(unit)
		s = next
	}
}

// series has count instants, step apart.
type series struct {
	first time.Time
	step  time.Duration
	count int64
}

func (s series) at(n int64) time.Time { return advance(s.first, n, s.step) }

// advance adds n steps of whole microseconds, whose sum may exceed a Duration.
func advance(t time.Time, n int64, step time.Duration) time.Time {
	us := n * step.Microseconds()
	return time.Unix(t.Unix()+us/1e6, int64(t.Nanosecond())+us%1e6*1e3).UTC()
}

// steps returns the number of whole steps from an instant to another one, which may be
// further away than a Duration.
func steps(from, to time.Time, step time.Duration) int64 {
	us := (to.Unix()-from.Unix())*1e6 + floorDiv(int64(to.Nanosecond()-from.Nanosecond()), 1e3)
	return floorDiv(us, step.Microseconds())
}

// all yields the instants after last and not after now, in series: those between two
// changes of the clock are computed together.
func (i Interval) all(last, now time.Time) iter.Seq[series] {
	unit := i.unit()
	return func(yield func(series) bool) {
		if unit == 0 {
			if n := steps(last, now, i.Every); n > 0 {
				yield(series{last.Add(i.Every).UTC(), i.Every, n})
			}
			return
		}
		for at := i.Next(last); !at.After(now); {
			found := series{at, i.Every.Truncate(unit), 1}
			found.count += i.regular(at, now, found.step)
			if !yield(found) {
				return
			}
			at = i.Next(found.at(found.count - 1))
		}
	}
}

// regular returns how many instants until now follow at a regular distance: those that
// are computed from times before the next change of the clock.
func (i Interval) regular(at, now time.Time, step time.Duration) int64 {
	s := i.zone().span(at)
	if !s.wall(at).Equal(s.wall(at).Truncate(i.unit())) {
		return 0 // the day began when the clock skipped midnight
	}
	if step >= wholeDay && !s.start.IsZero() && at.Before(s.start.Add(farthestOffset)) {
		return 0 // the clock may repeat midnight
	}
	n := steps(at, now, step)
	if !s.end.IsZero() {
		n = min(n, steps(at.Add(i.Every), s.end.Add(-time.Microsecond), step)+1)
	}
	return max(n, 0)
}

// Latest returns the last instant after last that is not after now.
func (i Interval) Latest(last, now time.Time) (latest time.Time) {
	for s := range i.all(last, now) {
		latest = s.at(s.count - 1)
	}
	return latest
}

// since returns an instant from which there are at least n more until now, or last.
func (i Interval) since(last, now time.Time, n int64) time.Time {
	var tail []series
	total := int64(0)
	for s := range i.all(last, now) {
		tail, total = append(tail, s), total+s.count
		for total-tail[0].count > n {
			total -= tail[0].count
			tail = tail[1:]
		}
	}
	if total <= n || tail[0].count <= total-n-1 {
		return last
	}
	return tail[0].at(total - n - 1)
}

// phase returns the last instant before another one, given an instant that the interval
// has, before or after it.
func (i Interval) phase(anchor, before time.Time) time.Time {
	limit := before.Add(-time.Microsecond)
	if anchor.Before(before) {
		if at := i.Latest(anchor, limit); !at.IsZero() {
			return at
		}
		return anchor
	}
	unit, step := i.unit(), i.Every
	if unit > 0 {
		step = i.Every.Truncate(unit)
	}
	at := advance(anchor, -steps(limit, anchor, step)-2, step)
	if z := i.zone(); unit == wholeDay {
		at = z.instant(midnight(z.wall(at).Add(unit / 2)))
	} else if unit > 0 {
		at = z.nextWhole(at.Add(-unit/2), unit)
	}
	if latest := i.Latest(at, limit); !latest.IsZero() {
		return latest
	}
	return at
}
