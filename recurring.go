package wakebell

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/recurring"
)

// Recurrence says when a recurring schedule fires. Exactly one of Every, Cron,
// Crontab and RRule is to be set; the zero value of the rest is the default.
type Recurrence struct {
	// Every is the time between two runs, 1 µs to 100 years, counted from the
	// first Put, or from Start. Relative cuts the instants to whole days, hours
	// or minutes, for an Every of at least a day, an hour, a minute.
	Every    time.Duration
	Relative bool

	// Cron is a standard expression of 5 fields, or of 6 with seconds before
	// them. Where day of the month and day of the week are both restricted,
	// either is enough. A Python beat passes such a schedule over.
	Cron string

	// Crontab is a crontab as Celery reads it: all of its fields must match.
	Crontab *Crontab

	// RRule is a rule of RFC 5545, as in "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9". It may
	// begin with a line "DTSTART:…", or "DTSTART;TZID=Europe/Berlin:…"; without,
	// it begins with the first Put.
	RRule string

	// Zone is the IANA time zone of Cron, Crontab and Relative, default UTC (of
	// Crontab and Relative: Beat.Zone). A time that its clocks show twice fires
	// once, the first time. One that they skip fires at the first instant after
	// the gap, or with SkipGaps not at all.
	Zone     string
	SkipGaps bool

	// Jitter puts every run off by up to so much, by chance, but on all nodes
	// alike; at most a day.
	Jitter time.Duration

	// Start and Until bound the runs, both included. MaxRuns ends the schedule
	// after so many that were fired, by hand too.
	Start, Until time.Time
	MaxRuns      int64

	// Misfire says what becomes of runs that were missed while no beat ran.
	// MisfireLimit bounds MisfireAll, default 100, at most 10,000: the last ones
	// count.
	Misfire      Misfire
	MisfireLimit int

	// Overlap says what becomes of a run while the timer of the last one is
	// there, pending, running or waiting to be retried.
	Overlap Overlap

	// Headers travel with every run, beside wakebell-schedule (the name),
	// wakebell-due (the instant) and wakebell-run (the number, from 1).
	Headers map[string]string
}

// Crontab has the fields of Celery's crontab, as Celery writes them; an empty
// one is "*".
type Crontab = recur.Crontab

// Misfire says what becomes of runs that were missed.
type Misfire = recur.Misfire

const (
	// MisfireOnce: the last of them fires.
	MisfireOnce = recur.MisfireOnce
	// MisfireSkip: none fires that is more than 10 s late.
	MisfireSkip = recur.MisfireSkip
	// MisfireAll: each fires, up to MisfireLimit.
	MisfireAll = recur.MisfireAll
)

// Overlap says what becomes of a run while the timer of the last is there.
type Overlap = recur.Overlap

const (
	// OverlapAllow: it fires all the same.
	OverlapAllow = recur.OverlapAllow
	// OverlapSkip: it does not.
	OverlapSkip = recur.OverlapSkip
	// OverlapQueue: it fires when the last is gone; of several only the last.
	OverlapQueue = recur.OverlapQueue
)

// Recurring is a recurring schedule that is not stored yet. Topic.Recurring and
// CeleryTask make it, Schedules.Put stores it.
type Recurring struct {
	name, task string
	when       Recurrence
	celery     bool

	body        []byte
	contentType string
	owner       string // the service that has it in its configuration; empty: none

	args, kwargs, options json.RawMessage
	err                   error
}

// Recurring makes a recurring schedule whose runs are timers of the topic with
// this body. What is wrong with it is said by Put. Its name is 1 to 400 bytes.
func (t Topic[T]) Recurring(name string, when Recurrence, body T) Recurring {
	r := Recurring{name: name, task: t.name, when: when}
	if t.name == "" {
		r.err = invalid("topic", "empty")
	}
	raw, contentType, err := t.codec.Encode(body)
	if err != nil {
		r.err = errors.Join(r.err, fmt.Errorf("%w: body: %w", ErrInvalid, err))
	}
	r.body, r.contentType = raw, contentType
	return r
}

// CeleryTask makes a recurring schedule whose runs are messages for Celery
// workers, on the Redis that keeps the schedule. Options are those of
// apply_async: queue, priority, expires, countdown, routing_key; nil for none.
func CeleryTask(name, task string, when Recurrence, args []any, kwargs, options map[string]any) Recurring {
	r := Recurring{name: name, task: task, when: when, celery: true}
	if task == "" {
		r.err = invalid("task", "empty")
	}
	encode := func(field string, v any, none bool) json.RawMessage {
		if none {
			return nil
		}
		raw, err := json.Marshal(v)
		if err != nil {
			r.err = errors.Join(r.err, invalid(field, "%v", err))
		}
		return raw
	}
	r.args = encode("args", args, args == nil)
	r.kwargs = encode("kwargs", kwargs, kwargs == nil)
	r.options = encode("options", options, options == nil)
	return r
}

// validate reports all that is wrong with it by itself.
func (r Recurring) validate() error {
	w, errs := r.when, []error{r.err}
	if r.name == "" || len(r.name) > recurring.MaxName || strings.HasPrefix(r.name, ":") {
		errs = append(errs, invalid("name", "%d bytes, want 1 to %d that do not begin with a colon", len(r.name), recurring.MaxName))
	}
	kinds := 0
	for _, set := range []bool{w.Every != 0, w.Cron != "", w.Crontab != nil, w.RRule != ""} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		errs = append(errs, invalid("Recurrence", "want one of Every, Cron, Crontab and RRule"))
	}
	if w.Relative && w.Every == 0 {
		errs = append(errs, invalid("Relative", "it is for Every"))
	}
	errs = append(errs, within("Jitter", w.Jitter, 0, 24*time.Hour))
	if w.MaxRuns < 0 {
		errs = append(errs, invalid("MaxRuns", "negative"))
	}
	if w.MisfireLimit < 0 || w.MisfireLimit > maxMisfires {
		errs = append(errs, invalid("MisfireLimit", "%d, want 0 to %d", w.MisfireLimit, maxMisfires))
	}
	if w.Misfire != MisfireOnce && w.Misfire != MisfireSkip && w.Misfire != MisfireAll {
		errs = append(errs, invalid("Misfire", "%s is unknown", quoted(string(w.Misfire))))
	}
	if w.Overlap != OverlapAllow && w.Overlap != OverlapSkip && w.Overlap != OverlapQueue {
		errs = append(errs, invalid("Overlap", "%s is unknown", quoted(string(w.Overlap))))
	}
	if !w.Until.IsZero() && w.Until.Before(w.Start) {
		errs = append(errs, invalid("Until", "before Start"))
	}
	for key, value := range w.Headers {
		d := Draft{}
		errs = append(errs, Header(key, value)(&d))
	}
	return errors.Join(errs...)
}

const maxMisfires = 10_000

// entry is what is to be stored in place of an entry that was found; old is nil
// where there was none that can be read.
func (r Recurring) entry(prefix string, now time.Time, old *recur.Entry, in *time.Location) (recur.Entry, error) {
	w := r.when
	e := recur.Entry{
		Definition: recur.Definition{Name: prefix + r.name, Task: r.task, Args: r.args, Kwargs: r.kwargs, Options: r.options},
		Meta:       recur.Meta{LastRunAt: now.Truncate(time.Microsecond)},
		Ours: recur.Ours{
			ID: uuid.NewString(), Prefix: prefix, Owner: r.owner, Celery: r.celery, Zone: w.Zone, SkipGaps: w.SkipGaps, Jitter: w.Jitter,
			Start: w.Start.UTC(), Until: w.Until.UTC(), MaxRuns: w.MaxRuns, Misfire: w.Misfire, MisfireLimit: w.MisfireLimit,
			Overlap: w.Overlap, Headers: maps.Clone(w.Headers), Source: w.RRule,
		},
	}
	if !r.celery {
		e.Ours.Topic, e.Ours.HasBody, e.Ours.Body, e.Ours.ContentType = prefix+r.task, true, r.body, r.contentType
	}
	if err := r.setRule(&e, now, old); err != nil {
		return e, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	paused := false
	if old != nil {
		o := &e.Ours
		o.ID, o.Run, o.Last, o.LastRun, o.Outbox = old.Ours.ID, old.Ours.Run, old.Ours.Last, old.LastRun(), old.Ours.Outbox
		if o.ID == "" {
			o.ID = uuid.NewString()
		}
		e.Meta.Runs, paused = old.Meta.Runs, !old.Enabled()
		if e.SameRule(*old) { // else it would begin anew whenever it is put
			o.Fired = old.Ours.Fired
			if !old.Meta.LastRunAt.IsZero() {
				e.Meta.LastRunAt = old.Meta.LastRunAt
			}
		}
	}
	e.SetEnabled(!paused)
	if err := e.Resolve(in); err != nil {
		return e, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return e, nil
}

func (r Recurring) setRule(e *recur.Entry, now time.Time, old *recur.Entry) error {
	w := r.when
	switch {
	case w.Every != 0:
		e.Meta.LastRunAt = gridBefore(e.Meta.LastRunAt, e.Ours.Start.Truncate(time.Microsecond), w.Every)
		return e.SetEvery(w.Every, w.Relative)
	case w.Cron != "":
		if w.Zone == "" {
			e.Ours.Zone = "UTC"
		}
		return e.SetCron(w.Cron)
	case w.Crontab != nil:
		return e.SetCrontab(*w.Crontab)
	case old != nil && old.Ours.Source == w.RRule && old.Ours.Zone == w.Zone: // it has begun already
		e.Definition.Schedule, e.Ours.RRule = old.Definition.Schedule, old.Ours.RRule
		return nil
	}
	start := now
	if !w.Start.IsZero() {
		start = w.Start
	}
	rule, err := recur.ParseRRule(w.RRule, start)
	if err != nil {
		return err
	}
	e.SetRRule(rule)
	return nil
}

// gridBefore is the last instant up to now that is whole intervals away from
// start, so that the one that follows it is so too; now without a start.
func gridBefore(now, start time.Time, every time.Duration) time.Time {
	if start.IsZero() {
		return now
	}
	n := now.Sub(start) / every
	if start.Add(n * every).After(now) {
		n--
	}
	at := start.Add(n * every)
	if at.After(now) { // a start so far away that a Duration does not hold it
		return now
	}
	return at
}
