package recur

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Crontab is a rule with the fields and syntax of Celery's crontab. An empty field is
// "*". Unlike in cron, month, day of the month and day of the week must all match.
type Crontab struct {
	Minute     string `json:"minute,omitempty"`
	Hour       string `json:"hour,omitempty"`
	DayOfWeek  string `json:"day_of_week,omitempty"` // 0 is Sunday, or names
	DayOfMonth string `json:"day_of_month,omitempty"`
	Month      string `json:"month_of_year,omitempty"`
}

// crontabRule has a bit for each value of a field.
type crontabRule struct {
	minute, hour, weekday, day, month uint64

	wild bool // the minute or the hour begins with a star
}

func (c crontabRule) in(z zone) walled { return walled{c, z, c.wild, newWork()} }

// CrontabIn returns the rule in a zone. Errors wrap [ErrSyntax].
func CrontabIn(c Crontab, in *time.Location, skipGaps bool) (When, error) {
	quote := func(s string) json.RawMessage {
		if s == "" {
			return nil
		}
		text, _ := json.Marshal(s) // a string has no error
		return text
	}
	rule, err := readCrontab(rawCrontab{
		Minute: quote(c.Minute), Hour: quote(c.Hour), DayOfWeek: quote(c.DayOfWeek),
		DayOfMonth: quote(c.DayOfMonth), Month: quote(c.Month),
	})
	if err != nil {
		return nil, err
	}
	return rule.in(zone{in, skipGaps}), nil
}

// rawCrontab is the schedule of a definition. An absent field is "*"; others are a
// string, a number or a list of numbers.
type rawCrontab struct {
	Type       string          `json:"__type__"`
	Minute     json.RawMessage `json:"minute"`
	Hour       json.RawMessage `json:"hour"`
	DayOfWeek  json.RawMessage `json:"day_of_week"`
	DayOfMonth json.RawMessage `json:"day_of_month"`
	Month      json.RawMessage `json:"month_of_year"`
}

func readCrontab(raw rawCrontab) (rule crontabRule, err error) {
	for _, f := range []struct {
		name      string
		text      json.RawMessage
		low, high int
		bits      *uint64
	}{
		{"minute", raw.Minute, 0, 59, &rule.minute},
		{"hour", raw.Hour, 0, 23, &rule.hour},
		{"day_of_week", raw.DayOfWeek, 0, 6, &rule.weekday},
		{"day_of_month", raw.DayOfMonth, 1, 31, &rule.day},
		{"month_of_year", raw.Month, 1, 12, &rule.month},
	} {
		if *f.bits, err = crontabField(f.text, f.low, f.high); err != nil {
			return rule, fmt.Errorf("crontab: %s: %w: %w", f.name, ErrSyntax, err)
		}
	}
	rule.wild = wild(raw.Minute) || wild(raw.Hour)
	return rule, nil
}

// wild reports whether a field begins with a star, or is absent, which means a star.
func wild(field json.RawMessage) bool {
	return field == nil || bytes.HasPrefix(field, []byte(`"*`))
}

func crontabField(raw json.RawMessage, low, high int) (bits uint64, err error) {
	if raw == nil {
		raw = json.RawMessage(`"*"`)
	}
	var text string
	var list []int
	var some []whole
	var one whole
	switch {
	case json.Unmarshal(raw, &text) == nil && raw[0] == '"':
		if list, err = expand(text, low, high); err != nil {
			return 0, err
		}
	case json.Unmarshal(raw, &one) == nil && string(raw) != "null":
		list = []int{int(one)}
	case json.Unmarshal(raw, &some) != nil || len(some) == 0:
		return 0, fmt.Errorf("%.100s is not a string, number or list of numbers", raw)
	default:
		list = wholes(some)
	}
	for _, n := range list {
		if n < low || n > high {
			return 0, fmt.Errorf("%d, want %d to %d", n, low, high)
		}
		bits |= 1 << n
	}
	return bits, nil
}

// The patterns of Celery's parser, in its order. As there, they match only the
// beginning, and the rest is ignored.
var (
	rangeSteps = regexp.MustCompile(`^(\w+?)-(\w+)/(\w+)?`)
	plainRange = regexp.MustCompile(`^(\w+?)-(\w+)`)
	starSteps  = regexp.MustCompile(`^\*/(\w+)?`)
	star       = regexp.MustCompile(`^\*$`)
)

func expand(spec string, low, high int) (all []int, err error) {
	for part := range strings.SplitSeq(spec, ",") {
		var some []int
		if part == "" {
			return nil, fmt.Errorf("an empty part")
		}
		if m := rangeSteps.FindStringSubmatch(part); m != nil {
			if some, err = expandRange(m[1], m[2], low, high); err == nil {
				some, err = everyNth(some, m[3])
			}
		} else if m := plainRange.FindStringSubmatch(part); m != nil {
			some, err = expandRange(m[1], m[2], low, high)
		} else if m := starSteps.FindStringSubmatch(part); m != nil {
			some, err = everyNth(sequence(low, high), m[1])
		} else if star.MatchString(part) {
			some = sequence(low, high)
		} else {
			some, err = expandRange(part, part, low, high)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func sequence(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// expandRange wraps around if the end is before the start.
func expandRange(first, last string, low, high int) ([]int, error) {
	from, err := crontabNumber(first, low, high)
	if err != nil {
		return nil, err
	}
	to, err := crontabNumber(last, low, high)
	if err != nil {
		return nil, err
	}
	if to < from {
		return append(sequence(from, high), sequence(low, to)...), nil
	}
	return sequence(from, to), nil
}

func everyNth(list []int, steps string) (all []int, err error) {
	n, err := strconv.Atoi(steps)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("steps of %.20q, want a number above 0", steps)
	}
	for i := 0; i < len(list); i += n {
		all = append(all, list[i])
	}
	return all, nil
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// crontabNumber parses a number, or the first three letters of a day of the week, which
// Celery accepts in every field.
func crontabNumber(text string, low, high int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		n = -1
		for i, name := range weekdays {
			if len(text) >= 3 && strings.EqualFold(text[:3], name) {
				n = i
			}
		}
		if n < 0 {
			return 0, fmt.Errorf("%.20q is neither a number nor a day of the week", text)
		}
	}
	if n < low || n > high {
		return 0, fmt.Errorf("%d, want %d to %d", n, low, high)
	}
	return n, nil
}

// farthest is the number of days that are searched: all combinations of weekdays and
// February 29 occur within 40 years.
const farthest = 41 * 366

func (c crontabRule) next(wall time.Time, w *work) time.Time {
	at := wall.Truncate(time.Minute).Add(time.Minute)
	day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	from := at.Sub(day)
	w.search()
	for range farthest {
		if !w.step() {
			break
		}
		if c.month&(1<<int(day.Month())) == 0 {
			day, from = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC), 0
			continue
		}
		if c.day&(1<<day.Day()) != 0 && c.weekday&(1<<int(day.Weekday())) != 0 {
			if offset, ok := c.within(from); ok {
				return day.Add(offset)
			}
		}
		day, from = day.AddDate(0, 0, 1), 0
	}
	return time.Time{}
}

// within returns the first match of a day at or after an offset from midnight.
func (c crontabRule) within(from time.Duration) (time.Duration, bool) {
	first := int(from / time.Hour)
	minute := int(from % time.Hour / time.Minute)
	for hour := first; hour < 24; hour, minute = hour+1, 0 {
		if c.hour&(1<<hour) == 0 {
			continue
		}
		for ; minute < 60; minute++ {
			if c.minute&(1<<minute) != 0 {
				return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute, true
			}
		}
	}
	return 0, false
}
