package recur

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/teambition/rrule-go"
)

// numbers is null, a number or a list of numbers.
type numbers []int

func (n *numbers) UnmarshalJSON(raw []byte) error {
	var one int
	if string(raw) == "null" {
		*n = nil
		return nil
	}
	if json.Unmarshal(raw, &one) == nil {
		*n = numbers{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]int)(n))
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
	Day  *int   `json:"wkday"`
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
		var n int
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
		*d = append(*d, n)
	}
	return nil
}

// rruleWire is the schedule of a definition. All fields but the last two are
// always written.
type rruleWire struct {
	Type       string  `json:"__type__"`
	Freq       *int    `json:"freq"`
	Interval   int     `json:"interval"`
	Wkst       *int    `json:"wkst"`
	Count      *int    `json:"count"`
	Bysetpos   numbers `json:"bysetpos"`
	Bymonth    numbers `json:"bymonth"`
	Bymonthday numbers `json:"bymonthday"`
	Byyearday  numbers `json:"byyearday"`
	Byeaster   numbers `json:"byeaster"`
	Byweekno   numbers `json:"byweekno"`
	Byweekday  days    `json:"byweekday"`
	Byhour     numbers `json:"byhour"`
	Byminute   numbers `json:"byminute"`
	Bysecond   numbers `json:"bysecond"`
	Dtstart    *int64  `json:"dtstart"`
	DtstartTZ  *int    `json:"dtstart_tz"`
	Until      *int64  `json:"until,omitempty"`
	UntilTZ    *int    `json:"until_tz,omitempty"`
}

// fixed returns a zone that is a number of minutes ahead of UTC.
func fixed(minutes *int) *time.Location {
	if minutes == nil || *minutes == 0 || *minutes < -24*60 || *minutes > 24*60 {
		return time.UTC
	}
	return time.FixedZone("", *minutes*60)
}

// readRRule returns the rule of a definition. Without a start it begins at last.
func readRRule(raw []byte, last time.Time) (When, error) {
	w := rruleWire{Interval: 1}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("rrule: %w: %w", ErrSyntax, err)
	}
	if w.Freq == nil {
		return nil, fmt.Errorf("rrule: %w: it has no freq", ErrSyntax)
	}
	in := fixed(w.DtstartTZ)
	start := last
	if w.Dtstart != nil {
		start = time.Unix(*w.Dtstart, 0)
	}
	o := rrule.ROption{
		Freq: rrule.Frequency(*w.Freq), Interval: w.Interval, Dtstart: zone{in: in}.wall(start),
		Bysetpos: w.Bysetpos, Bymonth: w.Bymonth, Bymonthday: w.Bymonthday, Byyearday: w.Byyearday,
		Byeaster: w.Byeaster, Byweekno: w.Byweekno, Byhour: w.Byhour, Byminute: w.Byminute, Bysecond: w.Bysecond,
	}
	if w.Count != nil {
		o.Count = *w.Count
	}
	if w.Wkst != nil && *w.Wkst >= 0 && *w.Wkst <= 6 {
		o.Wkst = rruleDays[*w.Wkst]
	}
	for _, day := range w.Byweekday {
		o.Byweekday = append(o.Byweekday, rruleDays[day])
	}
	if w.Until != nil {
		o.Until = zone{in: in}.wall(time.Unix(*w.Until, 0))
	}
	return rruleOf(o, in, false)
}

// wire returns the rule in the format of a definition. It must not float.
func (r RRuleText) wire() rruleWire {
	o, zero := r.options, 0
	freq, start := int(o.Freq), o.Dtstart.Unix()
	w := rruleWire{
		Type: "rrule", Freq: &freq, Interval: max(o.Interval, 1),
		Bysetpos: o.Bysetpos, Bymonth: o.Bymonth, Bymonthday: o.Bymonthday, Byyearday: o.Byyearday,
		Byeaster: o.Byeaster, Byweekno: o.Byweekno, Byhour: o.Byhour, Byminute: o.Byminute, Bysecond: o.Bysecond,
		Dtstart: &start, DtstartTZ: &zero,
	}
	if o.Count > 0 {
		w.Count = &o.Count
	}
	if day := o.Wkst.Day(); day != 0 {
		w.Wkst = &day
	}
	for _, day := range o.Byweekday {
		w.Byweekday = append(w.Byweekday, day.Day())
	}
	if !o.Until.IsZero() {
		until := o.Until.Unix()
		w.Until, w.UntilTZ = &until, &zero
	}
	return w
}
