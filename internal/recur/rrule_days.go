package recur

import (
	"slices"
	"time"

	"github.com/teambition/rrule-go"
)

// daySeconds is a day in seconds; days are counted from 1970.
const daySeconds = 24 * 60 * 60

func dayOf(t time.Time) int64 { return floorDiv(t.Unix(), daySeconds) }

func dateOf(day int64) time.Time { return time.Unix(day*daySeconds, 0).UTC() }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// dayFilter selects days by the options of a rule that concern days.
type dayFilter struct {
	o        rrule.ROption
	months   uint16
	weekdays uint8           // weekdays without a number; 0 is Monday
	numbered []rrule.Weekday // weekdays with a number in the month or the year
}

func newDayFilter(o rrule.ROption) dayFilter {
	f := dayFilter{o: o}
	for _, m := range o.Bymonth {
		f.months |= 1 << m
	}
	for _, d := range o.Byweekday {
		if d.N() == 0 || o.Freq > rrule.MONTHLY {
			f.weekdays |= 1 << d.Day()
		} else {
			f.numbered = append(f.numbered, d)
		}
	}
	return f
}

// hasMonth reports whether the rule has days in the month of a date.
func (f *dayFilter) hasMonth(date time.Time) bool {
	return f.months == 0 || f.months&(1<<int(date.Month())) != 0
}

// has reports whether the rule has a date.
func (f *dayFilter) has(date time.Time) bool {
	o := &f.o
	weekday := (int(date.Weekday()) + 6) % 7
	switch {
	case !f.hasMonth(date),
		f.weekdays != 0 && f.weekdays&(1<<weekday) == 0,
		len(f.numbered) > 0 && !f.hasNumbered(date, weekday),
		len(o.Byweekno) > 0 && !f.hasWeek(date, weekday),
		len(o.Bymonthday) > 0 && !eitherEnd(o.Bymonthday, date.Day(), daysIn(date)),
		len(o.Byyearday) > 0 && !eitherEnd(o.Byyearday, date.YearDay(), yearDays(date.Year())),
		len(o.Byeaster) > 0 && !slices.Contains(o.Byeaster, date.YearDay()-easter(date.Year()).YearDay()):
		return false
	}
	return true
}

// eitherEnd reports whether a list contains a number, counted from the start or, if
// negative, from the end.
func eitherEnd(list []int, n, of int) bool {
	return slices.Contains(list, n) || slices.Contains(list, n-of-1)
}

func yearDays(year int) int { return time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).YearDay() }

func daysIn(date time.Time) int {
	return time.Date(date.Year(), date.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// hasNumbered reports whether a date is one of the numbered weekdays, such as the
// second Monday or the last one.
func (f *dayFilter) hasNumbered(date time.Time, weekday int) bool {
	n, of := date.Day(), daysIn(date)
	if f.o.Freq == rrule.YEARLY && len(f.o.Bymonth) == 0 {
		n, of = date.YearDay(), yearDays(date.Year())
	}
	return slices.ContainsFunc(f.numbered, func(d rrule.Weekday) bool {
		return d.Day() == weekday && (d.N() == (n-1)/7+1 || d.N() == -((of-n)/7+1))
	})
}

// hasWeek reports whether a date is in one of the numbered weeks. A week belongs to the
// year that contains four of its days.
func (f *dayFilter) hasWeek(date time.Time, weekday int) bool {
	list := f.o.Byweekno
	middle := date.AddDate(0, 0, 3-(weekday-f.o.Wkst.Day()+7)%7)
	n := (middle.YearDay()-1)/7 + 1
	weeks := (yearDays(middle.Year())-1-(middle.YearDay()-1)%7)/7 + 1
	if middle.Year() > date.Year() { // counted only from the start, as the peers do
		return slices.Contains(list, n)
	}
	return eitherEnd(list, n, weeks)
}

// easter returns the Western Easter Sunday of a year.
func easter(year int) time.Time {
	a, b, c := year%19, year/100, year%100
	d, e := b/4, b%4
	g := (8*b + 13) / 25
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	m := (a + 11*h + 22*l) / 451
	month, day := (h+l-7*m+114)/31, (h+l-7*m+114)%31+1
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}
