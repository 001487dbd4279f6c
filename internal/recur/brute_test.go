package recur

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// This file evaluates rules by brute force: it moves a clock on the wall in steps of a
// minute, or a second, and shares no code with the package. Times are in Unix seconds;
// a wall time is what the clock shows, in seconds since 1970.

// bruteClock is the clock of a zone.
type bruteClock struct {
	in   *time.Location
	tick int64
}

// newBruteClock returns a clock that ticks in minutes if all offsets around an instant
// are whole minutes, else in seconds.
func newBruteClock(in *time.Location, around int64) bruteClock {
	c := bruteClock{in, 60}
	for at := around - 40*3600; at <= around+40*3600; at += 1800 {
		if c.wall(at)%60 != at%60 {
			c.tick = 1
		}
	}
	return c
}

func (c bruteClock) wall(at int64) int64 {
	_, offset := time.Unix(at, 0).In(c.in).Zone()
	return at + int64(offset)
}

// bruteRule is a rule of wall times.
type bruteRule struct {
	text     string
	matches  func(wall int64) bool
	twice    bool // in both passes of a repeated hour
	skipGaps bool
}

// down returns the multiple of a unit at or before n, also of a negative n.
func down(n, unit int64) int64 { return n - ((n%unit)+unit)%unit }

// instants returns the instants of a rule with from < instant ≤ to.
func (c bruteClock) instants(rule bruteRule, from, to int64) (all []int64) {
	first := down(from-30*3600, 60)
	previous, shown := c.wall(first), c.wall(first)
	for at := first + c.tick; at <= to; at += c.tick {
		wall, due := c.wall(at), false
		for skipped := down(previous, 60) + 60; skipped < wall && wall > previous+c.tick; skipped += 60 {
			due = due || (!rule.skipGaps && rule.matches(skipped) && (rule.twice || skipped > shown))
		}
		if wall%60 == 0 && (rule.twice || wall > shown) && rule.matches(wall) {
			due = true
		}
		if due && at > from {
			all = append(all, at)
		}
		previous, shown = wall, max(shown, wall)
	}
	return all
}

// next returns the instant of a relative interval after last; unit is a minute, an hour
// or a day in seconds.
func (c bruteClock) next(last, every, unit int64) int64 {
	if unit == 86400 {
		for day := down(c.wall(last)+every, unit); ; day += unit {
			at := down(day-26*3600, 60)
			for c.wall(at) < day {
				at += c.tick
			}
			if at > last {
				return at
			}
		}
	}
	end := last + every
	wanted := down(c.wall(end), unit)
	found := down(end, c.tick)
	for c.wall(found) != wanted && found > end-27*3600 {
		found -= c.tick
	}
	if c.wall(found) != wanted {
		found = c.whole(end, unit)
	}
	if found <= last {
		found = c.whole(last, unit)
	}
	return found
}

// whole returns the first instant after another one at which the clock shows a whole
// unit.
func (c bruteClock) whole(after, unit int64) int64 {
	at := down(after, c.tick) + c.tick
	for c.wall(at)%unit != 0 {
		at += c.tick
	}
	return at
}

// bruteField is a field of a crontab.
type bruteField struct {
	text   string
	values []int
	star   bool
}

// restricts reports whether a field of a cron expression is one that has no value for
// every day.
func (f bruteField) restricts() bool { return f.text != "*" && f.text != "*/1" }

func drawField(r *rand.Rand, low, high int) bruteField {
	from, step := low+r.IntN(high-low+1), 1+r.IntN(12)
	to := from + r.IntN(high-from+1)
	sequence := func(from, to, step int) (all []int) {
		for n := from; n <= to; n += step {
			all = append(all, n)
		}
		return all
	}
	switch r.IntN(5) {
	case 0:
		return bruteField{"*", sequence(low, high, 1), true}
	case 1:
		return bruteField{"*/" + strconv.Itoa(step), sequence(low, high, step), true}
	case 2:
		return bruteField{fmt.Sprintf("%d-%d/%d", from, to, step), sequence(from, to, step), false}
	case 3:
		return bruteField{fmt.Sprintf("%d,%d", from, to), []int{from, to}, false}
	default:
		return bruteField{strconv.Itoa(from), []int{from}, false}
	}
}

// drawCron draws a cron expression and a crontab with the same minutes and hours. Half
// of them are for all days.
func drawCron(r *rand.Rand) (cron, crontab bruteRule, fields Crontab) {
	minute, hour, day, weekday := drawField(r, 0, 59), drawField(r, 0, 5), drawField(r, 1, 31), drawField(r, 0, 6)
	if hour.star {
		hour = bruteField{hour.text, nil, true}
		step := 1
		if _, text, ok := strings.Cut(hour.text, "/"); ok {
			step, _ = strconv.Atoi(text)
		}
		for n := 0; n < 24; n += step {
			hour.values = append(hour.values, n)
		}
	}
	if r.IntN(2) == 0 {
		day, weekday = bruteField{"*", nil, true}, bruteField{"*", nil, true}
	}
	fields = Crontab{Minute: minute.text, Hour: hour.text, DayOfMonth: day.text, DayOfWeek: weekday.text}
	rule := func(either bool) bruteRule {
		return bruteRule{
			text:  strings.Join([]string{minute.text, hour.text, day.text, "*", weekday.text}, " "),
			twice: minute.star || hour.star, skipGaps: r.IntN(4) == 0,
			matches: func(wall int64) bool {
				at := time.Unix(wall, 0).UTC()
				byDay := day.values == nil || slices.Contains(day.values, at.Day())
				byWeekday := weekday.values == nil || slices.Contains(weekday.values, int(at.Weekday()))
				days := byDay && byWeekday
				if either && day.restricts() && weekday.restricts() {
					days = byDay || byWeekday
				}
				return days && slices.Contains(minute.values, at.Minute()) && slices.Contains(hour.values, at.Hour())
			},
		}
	}
	return rule(true), rule(false), fields
}

// drawRRule draws a rule of RFC 5545 that began before an instant.
func drawRRule(r *rand.Rand, zone string, around time.Time) bruteRule {
	start := around.AddDate(0, 0, -40).Truncate(time.Minute)
	if start.Year() < 1000 {
		start = around.Truncate(time.Minute)
	}
	hour, minute, every := r.IntN(6), r.IntN(60), int64(1+r.IntN(50))
	head := "DTSTART;TZID=" + zone + ":" + start.Format("20060102T150405") + "\nRRULE:"
	since := func(wall int64) int64 { return wall - start.Unix() }
	of := func(wall int64) time.Time { return time.Unix(wall, 0).UTC() }
	switch r.IntN(4) {
	case 0:
		return bruteRule{text: fmt.Sprintf("%sFREQ=DAILY;BYHOUR=%d;BYMINUTE=%d", head, hour, minute), matches: func(wall int64) bool {
			return since(wall) >= 0 && of(wall).Hour() == hour && of(wall).Minute() == minute
		}}
	case 1:
		return bruteRule{text: fmt.Sprintf("%sFREQ=HOURLY;INTERVAL=%d;BYMINUTE=%d", head, every, minute), twice: true, matches: func(wall int64) bool {
			period := (down(wall, 3600) - down(start.Unix(), 3600)) / 3600
			return since(wall) >= 0 && period%every == 0 && of(wall).Minute() == minute
		}}
	case 2:
		return bruteRule{text: fmt.Sprintf("%sFREQ=MINUTELY;INTERVAL=%d", head, every), twice: true, matches: func(wall int64) bool {
			return since(wall) >= 0 && since(wall)/60%every == 0
		}}
	default:
		return bruteRule{text: fmt.Sprintf("%sFREQ=MINUTELY;BYHOUR=%d;BYMINUTE=%d", head, hour, minute), matches: func(wall int64) bool {
			return since(wall) >= 0 && of(wall).Hour() == hour && of(wall).Minute() == minute
		}}
	}
}

// drawChange returns a random change of the offset of a zone, or a random instant.
func drawChange(r *rand.Rand, in *time.Location) int64 {
	from := time.Date(1880+r.IntN(190), 1, 1, 0, 0, 0, 0, time.UTC)
	all := changes(in, from, from.AddDate(5, 0, 0))
	if len(all) == 0 {
		return from.Unix()
	}
	return all[r.IntN(len(all))].at
}

func checkRule(t testing.TB, what string, rule When, want []int64, from, to int64) {
	t.Helper()
	var got []int64
	all := []time.Time{}
	for at := rule.Next(time.Unix(from, 0)); !at.IsZero() && at.Unix() <= to; at = rule.Next(at) {
		got, all = append(got, at.Unix()), append(all, at)
	}
	if !slices.Equal(want, got) {
		t.Fatalf("%s after %v: want %v, got %v", what, time.Unix(from, 0).UTC(), unixTimes(want), unixTimes(got))
	}
	latest := rule.Latest(time.Unix(from, 0), time.Unix(to, 0))
	if len(all) == 0 && !latest.IsZero() || len(all) > 0 && !latest.Equal(all[len(all)-1]) {
		t.Fatalf("%s after %v until %v: the latest is %v", what, time.Unix(from, 0).UTC(), time.Unix(to, 0).UTC(), latest)
	}
	if tail := missed(rule, time.Unix(from, 0), time.Unix(to, 0), 7); !slices.EqualFunc(all[max(len(all)-7, 0):], tail, time.Time.Equal) {
		t.Fatalf("%s after %v until %v: missed %v", what, time.Unix(from, 0).UTC(), time.Unix(to, 0).UTC(), tail)
	}
}

func unixTimes(all []int64) (texts []string) {
	for _, at := range all {
		texts = append(texts, time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
	return texts
}

// checkZone compares random rules of each kind with the brute force, around a random
// change of the clock of a zone.
func checkZone(t testing.TB, r *rand.Rand, name string) {
	t.Helper()
	in := zoneNamed(t, name)
	at := drawChange(r, in)
	clock := newBruteClock(in, at)
	from := at - r.Int64N(6*3600)
	to := at + r.Int64N(9*3600)
	cron, crontab, fields := drawCron(r)
	byCron, err := Cron(cron.text, in, cron.skipGaps)
	if err == nil {
		checkRule(t, fmt.Sprintf("cron %s, skip gaps %v, in %s", cron.text, cron.skipGaps, name), byCron, clock.instants(cron, from, to), from, to)
	}
	if byCrontab, err := CrontabIn(fields, in, crontab.skipGaps); err == nil {
		checkRule(t, fmt.Sprintf("crontab %s, skip gaps %v, in %s", crontab.text, crontab.skipGaps, name), byCrontab, clock.instants(crontab, from, to), from, to)
	}
	if name != "UTC" {
		rule := drawRRule(r, name, time.Unix(at, 0).UTC())
		parsed, err := ParseRRule(rule.text, noon)
		if err != nil {
			t.Fatalf("%s: %v", rule.text, err)
		}
		when, err := parsed.When(false)
		if err != nil {
			t.Fatalf("%s: %v", rule.text, err)
		}
		checkRule(t, rule.text, when, clock.instants(rule, from, to), from, to)
	}
	checkRelative(t, r, clock, name, from)
}

func checkRelative(t testing.TB, r *rand.Rand, clock bruteClock, name string, from int64) {
	t.Helper()
	unit := []int64{60, 3600, 86400}[r.IntN(3)]
	every := unit + r.Int64N(min(5*unit, map[int64]int64{60: 3540, 3600: 82800, 86400: 9 * 86400}[unit]))
	if r.IntN(2) == 0 {
		every = unit
	}
	var want []int64
	at := from
	for range 12 {
		if at = clock.next(at, every, unit); unit == 86400 {
			clock = newBruteClock(clock.in, at+every)
		}
		want = append(want, at)
	}
	rule := Interval{Every: time.Duration(every) * time.Second, Relative: true, Zone: clock.in}
	checkRule(t, fmt.Sprintf("every %v relative in %s", rule.Every, name), rule, want, from, at)
}
