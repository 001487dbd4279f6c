package recur

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Raw is the hash of an entry: the bytes of its three fields. One that is nil
// is absent.
type Raw struct{ Definition, Meta, Ours []byte }

// Entry is a recurring schedule. Its rule remembers where it was asked, so an
// Entry is for one goroutine.
type Entry struct {
	Definition Definition
	Meta       Meta
	Ours       Ours

	when When
	work *work
}

// Read reads an entry. Zone is that of crontabs without one of their own.
// Errors wrap [ErrSyntax]; that about a rule which is not computed within its
// bounds wraps [ErrTooMuch] as well.
func Read(raw Raw, name string, in *time.Location) (Entry, error) {
	var e Entry
	var err error
	if e.Definition, err = ReadDefinition(raw.Definition); err != nil {
		return e, err
	}
	if e.Definition.Name != name {
		return e, fmt.Errorf("definition: %w: its name is %.100q", ErrSyntax, e.Definition.Name)
	}
	if e.Meta, err = ReadMeta(raw.Meta); err != nil {
		return e, err
	}
	if e.Ours, err = ReadOurs(raw.Ours); err != nil {
		return e, err
	}
	return e, e.Resolve(in)
}

// Resolve finds the rule of an entry whose fields were set.
func (e *Entry) Resolve(in *time.Location) (err error) {
	if in == nil {
		in = time.UTC
	}
	if e.Ours.Zone != "" {
		if in, err = LoadZone(e.Ours.Zone); err != nil {
			return err
		}
	}
	switch {
	case !e.alone():
		e.when, err = e.Definition.when(in, e.Ours.SkipGaps, e.Meta.LastRunAt)
	case e.Ours.Cron != "":
		e.when, err = Cron(e.Ours.Cron, in, e.Ours.SkipGaps)
	default:
		var rule RRuleText
		if rule, err = ParseRRule(e.Ours.RRule, e.Meta.LastRunAt); err == nil {
			e.when, err = rule.When(e.Ours.SkipGaps)
		}
	}
	if err != nil {
		return err
	}
	e.work = newWork()
	if rule, ok := e.when.(walled); ok {
		rule.work = e.work
		e.when = rule
	}
	e.begin(planSteps)
	e.after(e.Meta.LastRunAt)
	if err := e.Err(); err != nil {
		return fmt.Errorf("%s: %w: %w", e.Rule(), ErrSyntax, err)
	}
	return nil
}

// Within has the search for instants end with a context.
func (e Entry) Within(ctx context.Context) { e.work.ctx = ctx }

// Err says why what was asked last has no answer, or not all of it: it wraps
// [ErrTooMuch], or is that of the context. Nil: it has one.
func (e Entry) Err() error {
	if e.work == nil {
		return nil
	}
	return e.work.err
}

// begin starts an operation of so many steps.
func (e Entry) begin(steps int) {
	if e.work != nil {
		e.work.begin(steps)
	}
}

// Raw is the entry as it is written.
func (e Entry) Raw() Raw {
	return Raw{e.Definition.Bytes(), e.Meta.Bytes(), e.Ours.Bytes()}
}

// Enabled reports whether the entry runs at all.
func (e Entry) Enabled() bool {
	if e.Ours.Paused {
		return false
	}
	return e.Definition.Enabled || e.alone()
}

// SetEvery gives the entry an interval.
func (e *Entry) SetEvery(every time.Duration, relative bool) error {
	if _, err := intervalOf(every.Seconds(), relative, nil); err != nil {
		return err
	}
	e.Definition.Schedule = marshal(intervalWire{"interval", seconds(every.Seconds()), relative})
	e.Ours.Cron, e.Ours.RRule = "", ""
	return nil
}

// SetCrontab gives the entry a crontab as Celery reads it.
func (e *Entry) SetCrontab(c Crontab) error {
	if _, err := CrontabIn(c, time.UTC, false); err != nil {
		return err
	}
	field := func(s string) json.RawMessage {
		if s == "" {
			s = "*"
		}
		return marshal(s)
	}
	e.Definition.Schedule = marshal(rawCrontab{
		"crontab", field(c.Minute), field(c.Hour), field(c.DayOfWeek), field(c.DayOfMonth), field(c.Month),
	})
	e.Ours.Cron, e.Ours.RRule = "", ""
	return nil
}

// SetCron gives the entry a cron expression.
func (e *Entry) SetCron(expr string) error {
	if _, err := parseCron(expr); err != nil {
		return fmt.Errorf("cron %.100q: %w: %w", expr, ErrSyntax, err)
	}
	e.Definition.Schedule, e.Ours.Cron, e.Ours.RRule = placeholder, expr, ""
	return nil
}

// SetRRule gives the entry a rule of RFC 5545, in the definition where that can
// hold it.
func (e *Entry) SetRRule(r RRuleText) {
	if r.floats || e.Ours.Zone != "" {
		e.Definition.Schedule, e.Ours.Cron, e.Ours.RRule = placeholder, "", r.String()
		return
	}
	e.Definition.Schedule, e.Ours.Cron, e.Ours.RRule = marshal(r.wire()), "", ""
}

// SetEnabled pauses or resumes the entry, for Python too.
func (e *Entry) SetEnabled(on bool) {
	e.Ours.Paused = !on
	e.Definition.Enabled = on && !e.alone()
}

// SameRule reports whether two entries have the same instants, given the same
// last one.
func (e Entry) SameRule(other Entry) bool {
	return same(e.Definition.Schedule, other.Definition.Schedule) && e.Ours.Cron == other.Ours.Cron &&
		e.Ours.RRule == other.Ours.RRule && e.Ours.Zone == other.Ours.Zone && e.Ours.Start.Equal(other.Ours.Start)
}

// Rule describes the rule in a few words.
func (e Entry) Rule() string {
	switch {
	case e.alone() && e.Ours.Cron != "":
		return "cron " + e.Ours.Cron
	case e.alone():
		return "rrule " + e.Ours.RRule
	}
	switch w := e.when.(type) {
	case Interval:
		if w.Relative {
			return "every " + w.Every.String() + " relative"
		}
		return "every " + w.Every.String()
	default:
		var raw rawCrontab
		if json.Unmarshal(e.Definition.Schedule, &raw) != nil || raw.Type != "crontab" {
			return "rrule " + string(e.Definition.Schedule)
		}
		text := "crontab"
		for _, f := range []json.RawMessage{raw.Minute, raw.Hour, raw.DayOfWeek, raw.DayOfMonth, raw.Month} {
			var s string
			if json.Unmarshal(or(f, `"*"`), &s) != nil {
				s = string(f)
			}
			text += " " + s
		}
		return text
	}
}

// Body is what a run carries, with its content type.
func (e Entry) Body() (body []byte, contentType string) {
	if e.Ours.HasBody {
		return e.Ours.Body, e.Ours.ContentType
	}
	args, kwargs := e.Arguments()
	return marshal(struct {
		Args   json.RawMessage `json:"args"`
		Kwargs json.RawMessage `json:"kwargs"`
	}{args, kwargs}), "application/json"
}

// Arguments are the args and kwargs of the definition; null is none.
func (e Entry) Arguments() (args, kwargs json.RawMessage) {
	args, kwargs = e.Definition.Args, e.Definition.Kwargs
	if string(or(args, "null")) == "null" {
		args = json.RawMessage("[]")
	}
	if string(or(kwargs, "null")) == "null" {
		kwargs = json.RawMessage("{}")
	}
	return args, kwargs
}

// Topic is the full name of where the runs go.
func (e Entry) Topic() string {
	if e.Ours.Topic != "" {
		return e.Ours.Topic
	}
	return e.Definition.Task
}
