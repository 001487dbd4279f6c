package recur

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/teambition/rrule-go"
)

// numbers is null, a number or a list of numbers.
type numbers []int

func (n *numbers) UnmarshalJSON(raw []byte) error {
	var one whole
	var list []whole
	if string(raw) == "null" {
		*n = nil
		return nil
	}
	if json.Unmarshal(raw, &one) == nil {
		*n = numbers{int(one)}
		return nil
	}
	err := json.Unmarshal(raw, &list)
	*n = wholes(list)
	return err
}

// MarshalJSON encodes a single number as a number, as Python does, and an empty list as
// null.
func (n numbers) MarshalJSON() ([]byte, error) {
	switch len(n) {
	case 0:
		return []byte("null"), nil
	case 1:
		return json.Marshal(n[0])
	default:
		return json.Marshal([]int(n))
	}
}

// days is null, a day of the week, or a list of them. 0 is Monday.
type days []int

type weekday struct {
	Type string `json:"__type__"`
	Day  *whole `json:"wkday"`
}

func (d *days) UnmarshalJSON(raw []byte) error {
	*d = nil
	if string(raw) == "null" {
		return nil
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		list = nil // else Unmarshal would overwrite raw
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
	}
	for _, one := range list {
		var n whole
		var w weekday
		if json.Unmarshal(one, &n) != nil {
			if err := json.Unmarshal(one, &w); err != nil || w.Day == nil {
				return fmt.Errorf("%.50s is not a day of the week", one)
			}
			n = *w.Day
		}
		if n < 0 || n > 6 {
			return fmt.Errorf("day of the week %d, want 0 to 6", n)
		}
		*d = append(*d, int(n))
	}
	return nil
}

// rruleWire is the schedule of a definition. All fields but the last two are
// always written.
type rruleWire struct {
	Type       string   `json:"__type__"`
	Freq       *whole   `json:"freq"`
	Interval   whole    `json:"interval"`
	Wkst       *whole   `json:"wkst"`
	Count      *whole   `json:"count"`
	Bysetpos   numbers  `json:"bysetpos"`
	Bymonth    numbers  `json:"bymonth"`
	Bymonthday numbers  `json:"bymonthday"`
	Byyearday  numbers  `json:"byyearday"`
	Byeaster   numbers  `json:"byeaster"`
	Byweekno   numbers  `json:"byweekno"`
	Byweekday  days     `json:"byweekday"`
	Byhour     numbers  `json:"byhour"`
	Byminute   numbers  `json:"byminute"`
	Bysecond   numbers  `json:"bysecond"`
	Dtstart    *whole   `json:"dtstart"`
	DtstartTZ  *float64 `json:"dtstart_tz"`
	Until      *whole   `json:"until,omitempty"`
	UntilTZ    *float64 `json:"until_tz,omitempty"`
}

// fixed returns a zone that is a number of minutes ahead of UTC, a float in each app
// outside UTC.
func fixed(minutes *float64) *time.Location {
	if minutes == nil || !(math.Abs(*minutes) <= 24*60) || *minutes == 0 {
		return time.UTC
	}
	return time.FixedZone("", int(math.Round(*minutes*60)))
}

// readRRule returns the rule of a definition. Without a start it begins at last.
func readRRule(raw []byte, last time.Time) (When, error) {
	o, in, err := readOptions(raw, last)
	if err != nil {
		return nil, err
	}
	return rruleOf(o, in, false)
}

// rruleText writes the rule of a definition as RFC 5545 does, with its start if it has one.
func rruleText(raw []byte) string {
	o, in, err := readOptions(raw, time.Time{})
	if err != nil || bound(o) != nil { // it does not fire
		return string(raw)
	}
	if o.Interval == 1 {
		o.Interval = 0 // the default
	}
	text := o.RRuleString()
	if start := o.Dtstart; start.Year() > 1 {
		text += " from " + zone{in: in}.instant(start).In(in).Format(time.RFC3339)
	}
	return text
}

// RepeatsAs reports whether the rule is the one that SetRRule made of a text, with some start. A
// Python process may have given the definition another one.
func (e Entry) RepeatsAs(text, in string) bool {
	if e.alone() {
		return e.Ours.RRule != ""
	}
	o, of, err := readOptions(e.Definition.Schedule, time.Time{})
	if err != nil {
		return false
	}
	rule, err := ParseRRuleIn(text, in, zone{in: of}.instant(o.Dtstart))
	return err == nil && rruleText(marshal(rule.wire())) == rruleText(e.Definition.Schedule)
}

// readOptions reads the rule of a definition, whose instants are wall times of a zone.
func readOptions(raw []byte, last time.Time) (o rrule.ROption, in *time.Location, err error) {
	w := rruleWire{Interval: 1}
	if err := json.Unmarshal(raw, &w); err != nil {
		return o, nil, fmt.Errorf("rrule: %w: %w", ErrSyntax, err)
	}
	if w.Freq == nil {
		return o, nil, fmt.Errorf("rrule: %w: FREQ is missing", ErrSyntax)
	}
	if w.Interval < 1 || (w.Count != nil && *w.Count < 1) {
		return o, nil, fmt.Errorf("rrule: %w: interval or count is not above 0", ErrSyntax)
	}
	in = fixed(w.DtstartTZ)
	start := last
	if w.Dtstart != nil {
		start = time.Unix(int64(*w.Dtstart), 0)
	}
	o = rrule.ROption{
		Freq: rrule.Frequency(*w.Freq), Interval: int(w.Interval), Dtstart: zone{in: in}.wall(start),
		Bysetpos: w.Bysetpos, Bymonth: w.Bymonth, Bymonthday: w.Bymonthday, Byyearday: w.Byyearday,
		Byeaster: w.Byeaster, Byweekno: w.Byweekno, Byhour: w.Byhour, Byminute: w.Byminute, Bysecond: w.Bysecond,
	}
	if w.Count != nil {
		o.Count = int(*w.Count)
	}
	if w.Wkst != nil && *w.Wkst >= 0 && *w.Wkst <= 6 {
		o.Wkst = rruleDays[*w.Wkst]
	}
	for _, day := range w.Byweekday {
		o.Byweekday = append(o.Byweekday, rruleDays[day])
	}
	if w.Until != nil {
		o.Until = zone{in: in}.wall(time.Unix(int64(*w.Until), 0))
	}
	return o, in, nil
}

// wire returns the rule in the format of a definition. It must not float.
func (r RRuleText) wire() rruleWire {
	o, zero := r.options, 0.0
	freq, start := whole(o.Freq), whole(o.Dtstart.Unix())
	w := rruleWire{
		Type: "rrule", Freq: &freq, Interval: whole(max(o.Interval, 1)),
		Bysetpos: o.Bysetpos, Bymonth: o.Bymonth, Bymonthday: o.Bymonthday, Byyearday: o.Byyearday,
		Byeaster: o.Byeaster, Byweekno: o.Byweekno, Byhour: o.Byhour, Byminute: o.Byminute, Bysecond: o.Bysecond,
		Dtstart: &start, DtstartTZ: &zero,
	}
	if o.Count > 0 {
		count := whole(o.Count)
		w.Count = &count
	}
	if day := whole(o.Wkst.Day()); day != 0 {
		w.Wkst = &day
	}
	for _, day := range o.Byweekday {
		w.Byweekday = append(w.Byweekday, day.Day())
	}
	if !o.Until.IsZero() {
		until := whole(o.Until.Unix())
		w.Until, w.UntilTZ = &until, &zero
	}
	return w
}
