package recur

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// RRuleText is a parsed recurrence rule of RFC 5545.
type RRuleText struct {
	options rrule.ROption // wall times of zone, as instants of UTC
	zone    *time.Location
	floats  bool // RedBeat's definition does not support it
}

// ParseRRule parses a recurrence rule of RFC 5545, for example
//
//	FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9
//	DTSTART;TZID=Europe/Berlin:20260105T090000
//	RRULE:FREQ=WEEKLY;BYDAY=MO
//
// Without a DTSTART it begins at start, rounded up to a second. Times without a Z are in
// the zone of TZID, or in UTC. Errors wrap [ErrSyntax].
func ParseRRule(text string, start time.Time) (RRuleText, error) {
	return ParseRRuleIn(text, "", start)
}

// ParseRRuleIn is ParseRRule for a rule whose zone is that of a name, unless that is
// empty. A TZID must be the same.
func ParseRRuleIn(text, name string, start time.Time) (RRuleText, error) {
	fault := func(err error) (RRuleText, error) {
		return RRuleText{}, fmt.Errorf("rrule %.200q: %w: %w", text, ErrSyntax, err)
	}
	if len(text) > MaxRuleText {
		return fault(fmt.Errorf("%d bytes, want at most %d", len(text), MaxRuleText))
	}
	text = strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n")
	r := RRuleText{zone: time.UTC}
	if head, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(head, "DTSTART;TZID=") {
		id, at, found := strings.Cut(strings.TrimPrefix(head, "DTSTART;TZID="), ":")
		if !found {
			return fault(fmt.Errorf("DTSTART has no time"))
		}
		if name != "" && name != id {
			return fault(fmt.Errorf("TZID and the zone %.50q differ; use one of them", name))
		}
		name, text = id, "DTSTART:"+at+"\n"+rest
	}
	if name != "" {
		in, err := LoadZone(name)
		if err != nil {
			return fault(err)
		}
		r.zone = in
	}
	if err := checkParts(text); err != nil {
		return fault(err)
	}
	o, err := rrule.StrToROption(text)
	if err != nil {
		return fault(err)
	}
	if o.Dtstart.IsZero() {
		o.Dtstart = zone{in: r.zone}.wall(start.Add(time.Second - time.Nanosecond).Truncate(time.Second))
	}
	if r.zone != time.UTC && strings.Contains(text, "UNTIL=") && strings.HasSuffix(untilOf(text), "Z") {
		o.Until = zone{in: r.zone}.wall(o.Until) // the RFC requires UTC if DTSTART has a zone
	}
	if head, _, _ := strings.Cut(text, "\n"); r.zone != time.UTC && strings.HasPrefix(head, "DTSTART:") && strings.HasSuffix(strings.TrimSpace(head), "Z") {
		o.Dtstart = zone{in: r.zone}.wall(o.Dtstart)
	}
	r.options = *o
	r.floats = r.zone != time.UTC
	for _, day := range o.Byweekday {
		r.floats = r.floats || day.N() != 0
	}
	if _, err := r.When(false); err != nil {
		return RRuleText{}, err
	}
	return r, nil
}

var zeroDay = regexp.MustCompile(`(^|,)[+-]?0+(MO|TU|WE|TH|FR|SA|SU)`)

// checkParts refuses what RFC 5545 does not allow and the library ignores.
func checkParts(text string) error {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "DTSTART") {
			continue
		}
		seen := map[string]bool{}
		for part := range strings.SplitSeq(strings.TrimPrefix(line, "RRULE:"), ";") {
			name, value, _ := strings.Cut(part, "=")
			n, err := strconv.Atoi(value)
			switch {
			case seen[name]:
				return fmt.Errorf("%.20s is given twice", name)
			case (name == "COUNT" || name == "INTERVAL") && err == nil && n < 1:
				return fmt.Errorf("%s: %d, want at least 1", name, n)
			case name == "BYDAY" && zeroDay.MatchString(value):
				return fmt.Errorf("BYDAY: %.50s, want no number or one from 1 or -1", value)
			}
			seen[name] = true
		}
		if seen["COUNT"] && seen["UNTIL"] {
			return fmt.Errorf("COUNT and UNTIL are mutually exclusive; use one")
		}
	}
	return nil
}

func untilOf(text string) string {
	_, until, _ := strings.Cut(text, "UNTIL=")
	until, _, _ = strings.Cut(until, ";")
	return strings.TrimSpace(until)
}

// When returns the rule.
func (r RRuleText) When(skipGaps bool) (When, error) {
	return rruleOf(r.options, r.zone, skipGaps)
}

// String returns the rule as text, with its start.
func (r RRuleText) String() string {
	o := r.options
	if r.zone == time.UTC {
		return o.String()
	}
	rule := o
	rule.Dtstart = time.Time{}
	text := rule.RRuleString()
	if !o.Until.IsZero() {
		text = strings.Replace(text, untilOf(text), strings.TrimSuffix(untilOf(text), "Z"), 1)
	}
	return "DTSTART;TZID=" + r.zone.String() + ":" + o.Dtstart.Format("20060102T150405") + "\nRRULE:" + text
}
