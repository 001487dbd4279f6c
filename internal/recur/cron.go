package recur

import (
	"fmt"
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
	parsed, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return rule, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok { // @every
		return rule, fmt.Errorf("@every is not supported; use an interval")
	}
	spec.Location = time.UTC
	return cronRule{spec, wildCron(fields)}, nil
}

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
		if from, ok := strings.CutSuffix(part, "-7"); ok && from != "7" {
			parts[i] = from + "-6,0"
		} else if part == "7" || part == "7-7" {
			parts[i] = "0"
		}
	}
	return strings.Join(parts, ",")
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
