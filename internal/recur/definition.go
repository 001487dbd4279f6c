package recur

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Definition is the field definition of an entry in the format of RedBeat. No field
// may be added: an unknown one crashes the Python beat.
type Definition struct {
	Name     string          `json:"name"`
	Task     string          `json:"task"`
	Args     json.RawMessage `json:"args"`    // a list, or null; Portable, as the next two
	Kwargs   json.RawMessage `json:"kwargs"`  // an object
	Options  json.RawMessage `json:"options"` // an object
	Schedule json.RawMessage `json:"schedule"`
	Enabled  bool            `json:"enabled"`
}

// seconds is a float that Python parses as a float: 60 is written as 60.0.
type seconds float64

func (s seconds) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(s), 'f', -1, 64)
	if !bytes.ContainsRune([]byte(text), '.') {
		text += ".0"
	}
	return []byte(text), nil
}

type intervalWire struct {
	Type     string  `json:"__type__"`
	Every    seconds `json:"every"`
	Relative bool    `json:"relative"` // Python drops an entry without it
}

// ReadDefinition reads a definition. Errors wrap [ErrSyntax].
func ReadDefinition(raw []byte) (Definition, error) {
	d := Definition{Enabled: true}
	if err := json.Unmarshal(Portable(raw), &d); err != nil {
		return d, fmt.Errorf("definition: %w: %w", ErrSyntax, err)
	}
	switch {
	case d.Name == "":
		return d, fmt.Errorf("definition: %w: the name is missing", ErrSyntax)
	case len(d.Schedule) == 0:
		return d, fmt.Errorf("definition: %w: the schedule is missing", ErrSyntax)
	case !opens(d.Args, '['):
		return d, fmt.Errorf("definition: %w: args is not a list", ErrSyntax)
	case !opens(d.Kwargs, '{'), !opens(d.Options, '{'):
		return d, fmt.Errorf("definition: %w: kwargs or options is not an object", ErrSyntax)
	}
	return d, nil
}

// opens reports whether JSON is null, absent, or begins with a bracket.
func opens(raw json.RawMessage, bracket byte) bool {
	return len(raw) == 0 || raw[0] == bracket || string(raw) == "null"
}

// Bytes encodes the definition.
func (d Definition) Bytes() []byte {
	d.Args, d.Kwargs, d.Options = or(d.Args, "null"), or(d.Kwargs, "{}"), or(d.Options, "{}")
	return Native(marshal(d))
}

func or(raw json.RawMessage, preset string) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(preset)
	}
	return raw
}

// marshal encodes a value that cannot fail to encode.
func marshal(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("recur: %v", err)) // raw JSON is checked when it is read
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// when returns the rule of the definition. in is the zone of crontabs and relative
// intervals; last is the start of a rule without one.
func (d Definition) when(in *time.Location, skipGaps bool, last time.Time) (When, error) {
	var number float64
	if json.Unmarshal(d.Schedule, &number) == nil && string(d.Schedule) != "null" {
		return intervalOf(number, false, in)
	}
	var kind struct {
		Type string `json:"__type__"`
	}
	if err := json.Unmarshal(d.Schedule, &kind); err != nil {
		return nil, fmt.Errorf("schedule: %w: %w", ErrSyntax, err)
	}
	switch kind.Type {
	case "interval":
		var w struct {
			Every    *float64
			Relative bool
		}
		if err := json.Unmarshal(d.Schedule, &w); err != nil || w.Every == nil {
			return nil, fmt.Errorf("interval: %w: %.200s", ErrSyntax, d.Schedule)
		}
		return intervalOf(*w.Every, w.Relative, in)
	case "crontab":
		var raw rawCrontab
		if err := json.Unmarshal(d.Schedule, &raw); err != nil {
			return nil, fmt.Errorf("crontab: %w: %w", ErrSyntax, err)
		}
		rule, err := readCrontab(raw)
		return rule.in(zone{in, skipGaps}), err
	case "rrule":
		return readRRule(d.Schedule, last)
	default:
		return nil, fmt.Errorf("schedule: %w: unknown type %.50q, want interval, crontab or rrule", ErrSyntax, kind.Type)
	}
}
