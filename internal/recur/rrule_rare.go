package recur

import (
	"slices"
	"sort"
	"time"

	"github.com/teambition/rrule-go"
)

// maxYear is the last year with instants.
const maxYear = 9990

// rareRule is a rule whose period is a day, a week, a month or a year. It computes the
// period of an instant by division, and checks each day of the period.
type rareRule struct {
	o     rrule.ROption
	days  dayFilter
	start int64   // dtstart in seconds
	until int64   // in seconds; 0: none
	times []int64 // seconds of a day, ascending

	// The instants of the last period.
	known  bool
	period int64
	found  []int64 // days, or instants where bysetpos picks them
}

func newRareRule(o rrule.ROption) *rareRule {
	o = withDays(o)
	r := &rareRule{o: o, days: newDayFilter(o), start: o.Dtstart.Unix()}
	if !o.Until.IsZero() {
		r.until = o.Until.Unix()
	}
	for _, h := range orElse(o.Byhour, o.Dtstart.Hour()) {
		for _, m := range orElse(o.Byminute, o.Dtstart.Minute()) {
			for _, s := range orElse(o.Bysecond, o.Dtstart.Second()) {
				r.times = append(r.times, int64(h*3600+m*60+s))
			}
		}
	}
	slices.Sort(r.times)
	r.times = slices.Compact(r.times)
	return r
}

func orElse(list []int, preset int) []int {
	if len(list) == 0 {
		return []int{preset}
	}
	return list
}

// withDays sets the day options that a rule without any takes from its start.
func withDays(o rrule.ROption) rrule.ROption {
	if len(o.Byweekno)+len(o.Byyearday)+len(o.Bymonthday)+len(o.Byweekday)+len(o.Byeaster) > 0 {
		return o
	}
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
	default:
	}
	return o
}

var rruleDays = []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}

func (r *rareRule) next(wall time.Time, w *work) time.Time {
	after := max(wall.Unix(), r.start-1)
	step := int64(r.o.Interval)
	first := r.unit(dayOf(r.o.Dtstart))
	n := max(floorDiv(r.unit(floorDiv(after, daySeconds))-first, step), 0)
	for w.search(); w.step(); n++ {
		from, to := r.bounds(first + n*step)
		if dateOf(from).Year() > maxYear || (r.until != 0 && from*daySeconds > r.until) {
			return time.Time{}
		}
		if !r.fill(first+n*step, from, to, w) {
			break
		}
		if at, ok := r.pick(after); ok {
			if r.until != 0 && at > r.until {
				return time.Time{}
			}
			return time.Unix(at, 0).UTC()
		}
	}
	return time.Time{}
}

// unit returns the number of the period that contains a day.
func (r *rareRule) unit(day int64) int64 {
	switch date := dateOf(day); r.o.Freq {
	case rrule.YEARLY:
		return int64(date.Year())
	case rrule.MONTHLY:
		return int64(date.Year())*12 + int64(date.Month()) - 1
	case rrule.WEEKLY:
		return floorDiv(day+3-int64(r.o.Wkst.Day()), 7) // 1970 began on a Thursday
	default:
		return day
	}
}

// bounds returns the first day of a period and the first day after it.
func (r *rareRule) bounds(unit int64) (from, to int64) {
	month := func(n int64) int64 {
		return dayOf(time.Date(int(floorDiv(n, 12)), time.Month(n-12*floorDiv(n, 12)+1), 1, 0, 0, 0, 0, time.UTC))
	}
	switch r.o.Freq {
	case rrule.YEARLY:
		return month(unit * 12), month(unit*12 + 12)
	case rrule.MONTHLY:
		return month(unit), month(unit + 1)
	case rrule.WEEKLY:
		from = unit*7 - 3 + int64(r.o.Wkst.Day())
		return max(from, dayOf(r.o.Dtstart)), from + 7
	default:
		return unit, unit + 1
	}
}

// fill computes the days of a period, or its instants if there is a bysetpos. It
// reports false if the search was given up.
func (r *rareRule) fill(unit, from, to int64, w *work) bool {
	if r.known && r.period == unit {
		return true
	}
	r.known, r.found = false, r.found[:0]
	for day := from; day < to; {
		if !w.step() {
			return false
		}
		date := dateOf(day)
		if !r.days.hasMonth(date) {
			day += int64(daysIn(date) - date.Day() + 1)
			continue
		}
		if r.days.has(date) {
			r.found = append(r.found, day)
		}
		day++
	}
	r.known, r.period = true, unit
	if len(r.o.Bysetpos) > 0 {
		r.found = r.picked(r.found)
	}
	return true
}

// picked returns the instants at the positions of bysetpos in a period.
func (r *rareRule) picked(days []int64) (all []int64) {
	for _, pos := range r.o.Bysetpos {
		if pos--; pos < 0 {
			pos += len(days)*len(r.times) + 1
		}
		if pos >= 0 && pos < len(days)*len(r.times) {
			all = append(all, days[pos/len(r.times)]*daySeconds+r.times[pos%len(r.times)])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pick returns the first instant of the period after another instant.
func (r *rareRule) pick(after int64) (int64, bool) {
	if len(r.o.Bysetpos) > 0 {
		i := sort.Search(len(r.found), func(i int) bool { return r.found[i] > after })
		if i == len(r.found) {
			return 0, false
		}
		return r.found[i], true
	}
	day := floorDiv(after, daySeconds)
	i, same := slices.BinarySearch(r.found, day)
	if same {
		second := after - day*daySeconds
		if t := sort.Search(len(r.times), func(n int) bool { return r.times[n] > second }); t < len(r.times) {
			return day*daySeconds + r.times[t], true
		}
		i++
	}
	if i == len(r.found) {
		return 0, false
	}
	return r.found[i]*daySeconds + r.times[0], true
}
