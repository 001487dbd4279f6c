package recur

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Cron parses a cron expression of 5 fields (minute, hour, day of month, month, day of
// week), or of 6 with seconds first, or one of @hourly, @daily, @weekly, @monthly,
// @yearly, in a time zone. If both days are restricted, one of them must match. Errors
// wrap [ErrSyntax].
func Cron(expr string, in *time.Location, skipGaps bool) (When, error) {
	rule, err := parseCron(expr)
	if err != nil {
		return nil, fmt.Errorf("cron %.100q: %w: %w", expr, ErrSyntax, err)
	}
	return walled{rule, zone{in, skipGaps}, rule.wild, newWork()}, nil
}

type cronRule struct {
	spec *cron.SpecSchedule
	wild bool // the minute or the hour begins with a star
}

var cronParser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseCron(expr string) (rule cronRule, err error) {
	// The library accepts a zone before the expression, and panics on an incomplete one.
	if strings.Contains(expr, "=") {
		return rule, fmt.Errorf("a zone must not be part of the expression")
	}
	fields := strings.Fields(expr)
	if n := len(fields); n == 5 || n == 6 {
		fields[n-1] = sundays(fields[n-1])
	}
	for _, field := range fields {
		if slices.Contains(strings.Split(field, ","), "") {
			return rule, fmt.Errorf("an empty part in %.50q", field)
		}
	}
	parsed, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return rule, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok { // @every
		return rule, fmt.Errorf("@every is not supported; use an interval")
	}
	spec.Location = time.UTC
	rule = cronRule{spec, wildCron(fields)}
	if rule.next(leapYear, newWork()).IsZero() {
		return rule, errNoInstant
	}
	return rule, nil
}

// leapYear begins a year that has each date. A rule without an instant after it has none.
var leapYear = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var errNoInstant = errors.New("no date matches all fields")

// wildCron reports whether the minute or the hour of an expression begins with a star,
// or a question mark, which means the same.
func wildCron(fields []string) bool {
	n := len(fields)
	if n < 5 {
		return fields[0] == "@hourly"
	}
	return strings.ContainsAny(fields[n-5][:1]+fields[n-4][:1], "*?")
}

// sundays replaces 7, which also means Sunday, by 0.
func sundays(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		span, step, stepped := strings.Cut(part, "/")
		first, isRange := strings.CutSuffix(span, "-7")
		switch {
		case span == "7":
			parts[i] = "0"
		case isRange:
			if days := daysTo7(first, step, stepped); days != "" {
				parts[i] = days
			}
		}
	}
	return strings.Join(parts, ",")
}

// daysTo7 returns each step-th day from first to Sunday as a list; empty: there is
// none.
func daysTo7(first, step string, stepped bool) string {
	from, err := crontabNumber(first, 0, 7)
	n := 1
	if err == nil && stepped {
		n, err = strconv.Atoi(step)
	}
	if err != nil || n < 1 {
		return ""
	}
	var days []string
	for day := from; day <= 7; day += n {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

// next calls the library twice: it searches five years ahead, and a February 29 may be
// eight years away.
func (c cronRule) next(wall time.Time, w *work) time.Time {
	if w.search(); !w.step() {
		return time.Time{}
	}
	at := c.spec.Next(wall)
	if at.IsZero() {
		at = c.spec.Next(wall.AddDate(5, 0, 0))
	}
	return at
}
