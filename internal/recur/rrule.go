package recur

import (
	"fmt"
	"slices"
	"time"

	"github.com/teambition/rrule-go"
)

// rruleOf makes the rule of options whose instants are wall times of a zone.
func rruleOf(o rrule.ROption, in *time.Location, skipGaps bool) (When, error) {
	if o.Interval < 0 || o.Interval > 1_000_000 || o.Count < 0 || o.Count > maxCount {
		return nil, fmt.Errorf("rrule: %w: interval %d, count %d", ErrSyntax, o.Interval, o.Count)
	}
	if o.Freq < rrule.YEARLY || o.Freq > rrule.SECONDLY {
		return nil, fmt.Errorf("rrule: %w: freq %d, want 0 to 6", ErrSyntax, o.Freq)
	}
	o.Interval = max(o.Interval, 1)
	o.Dtstart = o.Dtstart.Truncate(time.Second)
	if _, err := rrule.NewRRule(o); err != nil {
		return nil, fmt.Errorf("rrule: %w: %w", ErrSyntax, err)
	}
	var rule wallRule
	if o.Freq >= rrule.HOURLY {
		frequent, err := newFrequent(o)
		if err != nil {
			return nil, err
		}
		rule = frequent
	} else {
		rule = &rareRule{o: o}
	}
	if o.Count > 0 {
		rule = &counted{rule: rule, start: o.Dtstart, left: o.Count}
	}
	return walled{rule, zone{in, skipGaps}}, nil
}

// maxCount bounds the instants that are counted from the start of a rule.
const maxCount = 10_000_000

// counted ends a rule after so many instants. They have to be counted from the
// start, but once: it remembers how far it came.
type counted struct {
	rule  wallRule
	start time.Time
	left  int
	last  time.Time // the instant of the last one; zero: not counted yet
}

func (c *counted) next(wall time.Time) time.Time {
	if c.last.IsZero() {
		c.last = c.start.Add(-time.Second)
		for range c.left {
			at := c.rule.next(c.last)
			if at.IsZero() {
				break
			}
			c.last = at
		}
	}
	at := c.rule.next(wall)
	if at.After(c.last) {
		return time.Time{}
	}
	return at
}

// rareRule is a rule of days or longer, which the library evaluates. It does so
// from the start of the rule, so that is moved to shortly before what is asked
// for.
type rareRule struct {
	o      rrule.ROption
	at     *rrule.RRule
	origin time.Time // dtstart of at
}

// stride is after how many days a rule repeats itself in phase; 0: its start
// cannot be moved.
func (r *rareRule) stride() int {
	switch r.o.Freq {
	case rrule.DAILY:
		return r.o.Interval
	case rrule.WEEKLY:
		return 7 * r.o.Interval
	default:
		return 0
	}
}

func (r *rareRule) next(wall time.Time) time.Time {
	origin := r.o.Dtstart
	if days := r.stride(); days > 0 && wall.After(origin) {
		// Two strides earlier: a week's instants begin before its start.
		n := int(wall.Sub(origin)/(24*time.Hour))/days - 2
		origin = origin.AddDate(0, 0, max(n, 0)*days)
	} else if r.o.Freq == rrule.YEARLY && wall.Year()-origin.Year() > 2*r.o.Interval && origin.YearDay() < 60 {
		n := (wall.Year()-origin.Year())/r.o.Interval - 2
		origin = origin.AddDate(n*r.o.Interval, 0, 0)
	}
	if r.at == nil || !origin.Equal(r.origin) {
		o := r.fixed()
		o.Dtstart = origin
		at, err := rrule.NewRRule(o)
		if err != nil { // it was made before
			return time.Time{}
		}
		r.at, r.origin = at, origin
	}
	at := r.at.After(wall, false)
	if !r.o.Until.IsZero() && at.After(r.o.Until) {
		return time.Time{}
	}
	return at
}

// fixed are the options with what they take from the start written out, so that
// it can be moved.
func (r *rareRule) fixed() rrule.ROption {
	o := r.o
	o.Count = 0
	days := len(o.Byweekno) + len(o.Byyearday) + len(o.Bymonthday) + len(o.Byweekday) + len(o.Byeaster)
	if days == 0 {
		switch o.Freq {
		case rrule.YEARLY:
			if len(o.Bymonth) == 0 {
				o.Bymonth = []int{int(o.Dtstart.Month())}
			}
			o.Bymonthday = []int{o.Dtstart.Day()}
		case rrule.MONTHLY:
			o.Bymonthday = []int{o.Dtstart.Day()}
		case rrule.WEEKLY:
			o.Byweekday = []rrule.Weekday{rruleDays[(int(o.Dtstart.Weekday())+6)%7]}
		}
	}
	return o
}

var rruleDays = []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}

// frequent is a rule of hours, minutes or seconds. The library walks over every
// one of them from the start; this finds the period that is asked for by
// counting, and takes from the library the days alone.
type frequent struct {
	o      rrule.ROption
	unit   time.Duration
	times  []time.Duration // within a period, ascending
	days   *rrule.RRule    // nil: every day
	hours  uint64          // the periods' hours, minutes and seconds; all: every one
	minute uint64
	second uint64

	// The days between which there is none: what was asked last.
	asked, found time.Time
}

const all = ^uint64(0)

func bits(list []int) (b uint64) {
	for _, n := range list {
		b |= 1 << n
	}
	if b == 0 {
		return all
	}
	return b
}

func newFrequent(o rrule.ROption) (*frequent, error) {
	f := &frequent{o: o, hours: bits(o.Byhour), minute: all, second: all}
	minutes, seconds := o.Byminute, o.Bysecond
	switch o.Freq {
	case rrule.HOURLY:
		f.unit = time.Hour
		if len(minutes) == 0 {
			minutes = []int{o.Dtstart.Minute()}
		}
	case rrule.MINUTELY:
		f.unit, f.minute, minutes = time.Minute, bits(minutes), []int{0}
	default:
		f.unit, f.minute, minutes = time.Second, bits(minutes), []int{0}
		f.second, seconds = bits(seconds), []int{0}
	}
	if len(seconds) == 0 {
		seconds = []int{o.Dtstart.Second()}
	}
	for _, m := range minutes {
		for _, s := range seconds {
			f.times = append(f.times, time.Duration(m)*time.Minute+time.Duration(s)*time.Second)
		}
	}
	slices.Sort(f.times)
	f.times = picked(slices.Compact(f.times), o.Bysetpos)
	if len(o.Bymonth)+len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byweekday)+len(o.Byeaster) == 0 {
		return f, nil
	}
	days := o
	days.Freq, days.Interval, days.Count, days.Until = rrule.DAILY, 1, 0, time.Time{}
	days.Byhour, days.Byminute, days.Bysecond, days.Bysetpos = []int{0}, []int{0}, []int{0}, nil
	days.Dtstart = midnight(o.Dtstart)
	rule, err := rrule.NewRRule(days)
	if err != nil {
		return nil, fmt.Errorf("rrule: %w: %w", ErrSyntax, err)
	}
	f.days = rule
	return f, nil
}

// picked are those of the times that bysetpos names, all where it is empty.
func picked(times []time.Duration, positions []int) (out []time.Duration) {
	if len(positions) == 0 {
		return times
	}
	for i, t := range times {
		if slices.Contains(positions, i+1) || slices.Contains(positions, i-len(times)) {
			out = append(out, t)
		}
	}
	return out
}

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// mostPeriods bounds the search for a period that passes the filters: a rule
// whose phase never meets them has none.
const mostPeriods = 200_000

func (f *frequent) next(wall time.Time) time.Time {
	first := f.o.Dtstart.Truncate(f.unit)
	step := f.unit * time.Duration(f.o.Interval)
	period := first
	if wall.After(first) {
		period = first.Add(wall.Sub(first) / step * step)
	}
	for range mostPeriods {
		if to := f.skip(period); to.After(period) {
			if to.Year() > 9990 {
				return time.Time{}
			}
			// The first period at or after it.
			period = first.Add((to.Sub(first) + step - 1) / step * step)
			continue
		} else if to.IsZero() {
			return time.Time{}
		}
		for _, offset := range f.times {
			at := period.Add(offset)
			if !at.After(wall) || at.Before(f.o.Dtstart) {
				continue
			}
			if !f.o.Until.IsZero() && at.After(f.o.Until) {
				return time.Time{}
			}
			return at
		}
		period = period.Add(step)
	}
	return time.Time{}
}

// skip is the period itself where it passes the filters, else the instant before
// which none does; zero: there is none any more.
func (f *frequent) skip(period time.Time) time.Time {
	day := midnight(period)
	if !f.o.Until.IsZero() && period.After(f.o.Until) {
		return time.Time{}
	}
	if next := f.nextDay(day); !next.Equal(day) {
		return next
	}
	if f.hours&(1<<period.Hour()) == 0 {
		return period.Truncate(time.Hour).Add(time.Hour)
	}
	if f.minute&(1<<period.Minute()) == 0 {
		return period.Truncate(time.Minute).Add(time.Minute)
	}
	if f.second&(1<<period.Second()) == 0 {
		return period.Add(time.Second)
	}
	return period
}

// nextDay is the first day at or after one that passes the filters.
func (f *frequent) nextDay(day time.Time) time.Time {
	if f.days == nil || day.Equal(f.found) || (!f.asked.IsZero() && !day.Before(f.asked) && day.Before(f.found)) {
		if f.days == nil {
			return day
		}
		return f.found
	}
	if origin := f.days.GetDTStart(); day.After(origin.AddDate(0, 0, 400)) {
		f.days.DTStart(day)
	} else if day.Before(origin) {
		f.days.DTStart(midnight(f.o.Dtstart))
	}
	f.asked, f.found = day, f.days.After(day, true)
	return f.found
}
