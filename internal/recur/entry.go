package recur

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Raw has the three fields of an entry's hash. A nil field is absent.
type Raw struct{ Definition, Meta, Ours []byte }

// Entry is a recurring schedule. Its rule caches results, so an Entry must be used by
// one goroutine only.
type Entry struct {
	Definition Definition
	Meta       Meta
	Ours       Ours

	when   When
	work   *work
	in     *time.Location // of crontabs without their own
	stored *time.Location // of the meta, as it was read
}

// Read decodes an entry. in is the zone of crontabs without their own, and of the meta
// that is written; nil: UTC, and the zone that it was written in before. Errors wrap
// [ErrSyntax]; the error about a rule that exceeds the bounds of computation also
// wraps [ErrTooMuch].
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
	e.stored = e.Meta.Zone
	return e, e.Resolve(in)
}

// Resolve computes the rule of an entry after its fields were set. With a zone, the
// meta is written in it; without, in the zone that it was read in.
func (e *Entry) Resolve(in *time.Location) (err error) {
	if in == nil {
		in = time.UTC
	} else {
		e.Meta.Zone = in
	}
	e.in = in
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

// Within makes the search for instants stop when ctx ends.
func (e Entry) Within(ctx context.Context) { e.work.ctx = ctx }

// Err returns the reason why the last result is missing or incomplete: it wraps
// [ErrTooMuch] or is the error of the context. Nil: it is complete.
func (e Entry) Err() error {
	if e.work == nil {
		return nil
	}
	return e.work.err
}

// begin starts an operation with a number of steps.
func (e Entry) begin(steps int) {
	if e.work != nil {
		e.work.begin(steps)
	}
}

// Raw encodes the entry.
func (e Entry) Raw() Raw {
	return Raw{e.Definition.Bytes(), e.Meta.Bytes(), e.Ours.Bytes()}
}

// Enabled reports whether the entry is neither paused nor disabled.
func (e Entry) Enabled() bool {
	if e.Ours.Paused {
		return false
	}
	return e.Definition.Enabled || e.alone() || e.Ours.Apart
}

// ZoneWarning says that the last run was written with an offset that the zone of the
// entry's instants does not have; empty if not, or if the rule does not depend on a zone
// of the reader's.
func (e Entry) ZoneWarning() string {
	if e.stored == nil || e.Ours.Zone != "" || e.alone() || !e.ofZone() {
		return ""
	}
	last := e.Meta.LastRunAt
	written, here := last.In(e.stored).Format("-07:00"), last.In(e.in).Format("-07:00")
	if written == here {
		return ""
	}
	return fmt.Sprintf("its last run was written with the offset %s, but %s has %s then; the zone must be that of the Celery app", written, e.in, here)
}

// SetEvery sets the rule to an interval.
func (e *Entry) SetEvery(every time.Duration, relative bool) error {
	if _, err := intervalOf(every.Seconds(), relative, nil); err != nil {
		return err
	}
	e.Definition.Schedule = marshal(intervalWire{"interval", seconds(every.Seconds()), relative})
	e.Ours.Cron, e.Ours.RRule = "", ""
	return nil
}

// SetCrontab sets the rule to a crontab of Celery.
func (e *Entry) SetCrontab(c Crontab) error {
	rule, err := CrontabIn(c, time.UTC, false)
	if err != nil {
		return err
	}
	if rule.Next(leapYear).IsZero() {
		return fmt.Errorf("crontab: %w: %w", ErrSyntax, errNoInstant)
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

// SetCron sets the rule to a cron expression.
func (e *Entry) SetCron(expr string) error {
	if _, err := parseCron(expr); err != nil {
		return fmt.Errorf("cron %.100q: %w: %w", expr, ErrSyntax, err)
	}
	e.Definition.Schedule, e.Ours.Cron, e.Ours.RRule = placeholder, expr, ""
	return nil
}

// SetRRule sets the rule to a rule of RFC 5545. It is stored in the definition if
// RedBeat's format supports it.
func (e *Entry) SetRRule(r RRuleText) {
	if r.floats || e.Ours.Zone != "" {
		e.Definition.Schedule, e.Ours.Cron, e.Ours.RRule = placeholder, "", r.String()
		return
	}
	e.Definition.Schedule, e.Ours.Cron, e.Ours.RRule = marshal(r.wire()), "", ""
}

// SetEnabled pauses or resumes the entry, for Python too if it can express the rule.
func (e *Entry) SetEnabled(on bool) {
	e.Ours.Paused = !on
	e.Ours.Apart = e.ownZone()
	e.Definition.Enabled = on && !e.alone() && !e.Ours.Apart
}

// SameRule reports whether two entries have the same rule.
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
		return "rrule " + strings.ReplaceAll(cmp.Or(e.Ours.Source, e.Ours.RRule), "\n", " ")
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
			return "rrule " + rruleText(e.Definition.Schedule)
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

// Body returns the body of a run and its content type. In JSON made of args and kwargs,
// NaN and infinities are null.
func (e Entry) Body() (body []byte, contentType string) {
	if e.Ours.HasBody {
		return e.Ours.Body, e.Ours.ContentType
	}
	args, kwargs := e.Arguments()
	return standard(marshal(struct {
		Args   json.RawMessage `json:"args"`
		Kwargs json.RawMessage `json:"kwargs"`
	}{args, kwargs})), "application/json"
}

// Arguments returns the args and kwargs of the definition, as [Portable] JSON; null
// counts as empty.
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

// Topic returns the full name of the topic of the runs.
func (e Entry) Topic() string {
	if e.Ours.Topic != "" {
		return e.Ours.Topic
	}
	return e.Definition.Task
}
