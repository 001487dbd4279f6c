package recur

import (
	"fmt"
	"math"
	"time"
)

// Interval is a rule whose instants are Every apart, counted from the last one.
type Interval struct {
	Every time.Duration // whole microseconds, above 0
	// Relative truncates the instant to the day, hour or minute if Every is at least
	// a day, an hour or a minute.
	Relative bool
	Zone     *time.Location // of the days and hours; nil: UTC
}

// MaxEvery is the longest supported interval.
const MaxEvery = 100 * 365 * 24 * time.Hour

// intervalOf returns the interval of a number of seconds.
func intervalOf(seconds float64, relative bool, in *time.Location) (Interval, error) {
	us := math.RoundToEven(seconds * 1e6)
	if !(us >= 1) || us > float64(MaxEvery.Microseconds()) { // NaN is not >= 1
		return Interval{}, fmt.Errorf("interval: %w: %v seconds, want 0.000001 to %.0f", ErrSyntax, seconds, MaxEvery.Seconds())
	}
	return Interval{Every: time.Duration(us) * time.Microsecond, Relative: relative, Zone: in}, nil
}

// Next returns last + Every, truncated if Relative is set.
func (i Interval) Next(last time.Time) time.Time {
	next := last.Add(i.Every)
	if !i.Relative {
		return next
	}
	if cut := i.cut(next); cut.After(last) {
		return cut
	}
	return next // the truncated instant would not be after last
}

func (i Interval) cut(t time.Time) time.Time {
	in := i.Zone
	if in == nil {
		in = time.UTC
	}
	l := t.In(in)
	switch {
	case i.Every >= 24*time.Hour:
		return zone{in: in}.instant(time.Date(l.Year(), l.Month(), l.Day(), 0, 0, 0, 0, time.UTC))
	case i.Every >= time.Hour:
		return t.Add(-time.Duration(l.Minute())*time.Minute - time.Duration(l.Second())*time.Second - time.Duration(l.Nanosecond()))
	case i.Every >= time.Minute:
		return t.Add(-time.Duration(l.Second())*time.Second - time.Duration(l.Nanosecond()))
	default:
		return t
	}
}

// steps returns the number of whole intervals between last and now.
func (i Interval) steps(last, now time.Time) int64 {
	return int64(now.Sub(last) / i.Every)
}

// Latest returns the last multiple of Every after last that is not after now.
func (i Interval) Latest(last, now time.Time) time.Time {
	if !i.Relative {
		if n := i.steps(last, now); n > 0 {
			return last.Add(time.Duration(n) * i.Every)
		}
		return time.Time{}
	}
	latest := time.Time{}
	for at := i.near(last, now, 1); !at.After(now); at = i.Next(at) {
		latest = at
	}
	return latest
}

// near returns an instant after last with at least n more until now, or the first one.
// After the first one, the instants of a relative interval of minutes or hours are
// whole minutes or hours apart.
func (i Interval) near(last, now time.Time, n int) time.Time {
	first, every := i.Next(last), i.Every
	switch {
	case i.Every >= 24*time.Hour:
		return first
	case i.Every >= time.Hour:
		every = i.Every.Truncate(time.Hour)
	case i.Every >= time.Minute:
		every = i.Every.Truncate(time.Minute)
	}
	if steps := int64(now.Sub(first)/every) - int64(n); steps > 0 {
		return first.Add(time.Duration(steps) * every)
	}
	return first
}
