package recur

import (
	"fmt"
	"slices"
	"time"

	"github.com/teambition/rrule-go"
)

// Bounds of a rule. A rule beyond a bound is refused when it is stored; if it was
// stored by an older version, its entry is not fired.
const (
	MaxRuleText = 4096 // bytes
	maxInterval = 1_000_000
	maxCount    = 10_000
	maxList     = 400  // values of one BY list
	maxTimes    = 3600 // of a day, or of an hour of FREQ=HOURLY
)

// rruleOf returns the rule of options whose instants are wall times of a zone.
func rruleOf(o rrule.ROption, in *time.Location, skipGaps bool) (When, error) {
	o.Byhour, o.Byminute, o.Bysecond = distinct(o.Byhour), distinct(o.Byminute), distinct(o.Bysecond)
	if err := bound(o); err != nil {
		return nil, fmt.Errorf("rrule: %w: %w", ErrSyntax, err)
	}
	o.Interval = max(o.Interval, 1)
	o.Dtstart, o.Until = o.Dtstart.Truncate(time.Second), o.Until.Truncate(time.Second)
	if _, err := rrule.NewRRule(o); err != nil {
		return nil, fmt.Errorf("rrule: %w: %w", ErrSyntax, err)
	}
	var rule wallRule
	if o.Freq >= rrule.HOURLY {
		rule = newFrequent(o)
	} else {
		rule = newRareRule(o)
	}
	if o.Count > 0 {
		rule = &counted{rule: rule, start: o.Dtstart, left: o.Count}
	}
	return walled{rule: rule, zone: zone{in, skipGaps}, twice: repeats(o), work: newWork()}, nil
}

// repeats reports whether a rule applies to both passes of local times that the clock
// repeats: one that recurs by hours or less, unless it names the hour and the minute.
// With a COUNT it does not, because that counts local times.
func repeats(o rrule.ROption) bool {
	byMinute := o.Freq == rrule.HOURLY || len(o.Byminute) > 0
	return o.Freq >= rrule.HOURLY && o.Count == 0 && (len(o.Byhour) == 0 || !byMinute)
}

// bound refuses rules that could need an excessive amount of work.
func bound(o rrule.ROption) error {
	switch {
	case o.Freq < rrule.YEARLY || o.Freq > rrule.SECONDLY:
		return fmt.Errorf("FREQ: %d, want 0 to 6", o.Freq)
	case o.Interval < 0 || o.Interval > maxInterval:
		return fmt.Errorf("INTERVAL: %d, want 1 to %d", o.Interval, maxInterval)
	case o.Count < 0 || o.Count > maxCount:
		return fmt.Errorf("COUNT: %d, want at most %d; UNTIL has no such bound", o.Count, maxCount)
	case o.Dtstart.Year() < 1 || o.Dtstart.Year() > maxYear:
		return fmt.Errorf("DTSTART: the year %d, want 1 to %d", o.Dtstart.Year(), maxYear)
	}
	for name, list := range map[string]int{
		"BYSETPOS": len(o.Bysetpos), "BYMONTH": len(o.Bymonth), "BYMONTHDAY": len(o.Bymonthday), "BYYEARDAY": len(o.Byyearday),
		"BYWEEKNO": len(o.Byweekno), "BYDAY": len(o.Byweekday), "BYEASTER": len(o.Byeaster),
		"BYHOUR": len(o.Byhour), "BYMINUTE": len(o.Byminute), "BYSECOND": len(o.Bysecond),
	} {
		if list > maxList {
			return fmt.Errorf("%s: %d values, want at most %d", name, list, maxList)
		}
	}
	times := max(len(o.Bysecond), 1)
	if o.Freq < rrule.MINUTELY {
		times *= max(len(o.Byminute), 1)
	}
	if o.Freq < rrule.HOURLY {
		times *= max(len(o.Byhour), 1)
	}
	if times > maxTimes {
		return fmt.Errorf("BYHOUR, BYMINUTE, BYSECOND: %d times, want at most %d; a smaller FREQ has no such bound", times, maxTimes)
	}
	return nil
}

func distinct(list []int) []int { return slices.Compact(slices.Sorted(slices.Values(list))) }

// counted ends a rule after a number of instants. It counts them from the start once
// and caches the last one.
type counted struct {
	rule  wallRule
	start time.Time
	left  int
	last  time.Time // the instant of the last one; zero: not counted yet
}

func (c *counted) next(wall time.Time, w *work) time.Time {
	if c.last.IsZero() {
		last := c.start.Add(-time.Second)
		for range c.left {
			at := c.rule.next(last, w)
			if w.err != nil {
				return time.Time{} // the rule would end too early
			}
			if at.IsZero() {
				break
			}
			last = at
		}
		c.last = last
	}
	at := c.rule.next(wall, w)
	if at.After(c.last) {
		return time.Time{}
	}
	return at
}

// frequent is a rule with a FREQ of HOURLY, MINUTELY or SECONDLY. It computes the
// period of an instant by division.
type frequent struct {
	o      rrule.ROption
	unit   time.Duration
	times  []time.Duration // within a period, ascending
	days   *dayFilter      // nil: every day
	hours  uint64          // hours, minutes and seconds of periods; all: every one
	minute uint64
	second uint64

	// The result of the last search: there is no day from asked to before found.
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

func newFrequent(o rrule.ROption) *frequent {
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
	if len(o.Bymonth)+len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byweekday)+len(o.Byeaster) > 0 {
		days := newDayFilter(o)
		f.days = &days
	}
	return f
}

// picked returns the times at the positions of bysetpos; all if it is empty.
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

func (f *frequent) next(wall time.Time, w *work) time.Time {
	first := f.o.Dtstart.Truncate(f.unit).Unix()
	step := int64(f.unit/time.Second) * int64(f.o.Interval)
	period := first
	if wall.Unix() > first {
		period += (wall.Unix() - first) / step * step
	}
	for w.search(); w.step(); {
		begin := time.Unix(period, 0).UTC()
		to := f.skip(begin, w)
		if to.IsZero() || to.Year() > maxYear {
			return time.Time{}
		}
		if to.After(begin) { // continue with the first period at or after to
			period = first + (to.Unix()-first+step-1)/step*step
			continue
		}
		for _, offset := range f.times {
			at := begin.Add(offset)
			if !at.After(wall) || at.Before(f.o.Dtstart) {
				continue
			}
			if !f.o.Until.IsZero() && at.After(f.o.Until) {
				return time.Time{}
			}
			return at
		}
		period += step
	}
	return time.Time{}
}

// skip returns the period itself if it passes the filters, else an instant before
// which no period does; zero: there is none.
func (f *frequent) skip(period time.Time, w *work) time.Time {
	day := midnight(period)
	if !f.o.Until.IsZero() && period.After(f.o.Until) {
		return time.Time{}
	}
	if next := f.nextDay(day, w); !next.Equal(day) {
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

// nextDay returns the first day at or after day that passes the filters; zero: the
// search was given up.
func (f *frequent) nextDay(day time.Time, w *work) time.Time {
	if f.days == nil || day.Equal(f.found) {
		return day
	}
	if !f.asked.IsZero() && !day.Before(f.asked) && day.Before(f.found) {
		return f.found
	}
	for date := day; date.Year() <= maxYear; {
		if !w.step() {
			return time.Time{}
		}
		if !f.days.hasMonth(date) {
			date = date.AddDate(0, 0, daysIn(date)-date.Day()+1)
			continue
		}
		if f.days.has(date) {
			f.asked, f.found = day, date
			return date
		}
		date = date.AddDate(0, 0, 1)
	}
	return time.Time{}
}
