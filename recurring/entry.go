package recurring

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/wakebelltype"
)

// entry returns the entry to be stored in place of old, which is nil if there is
// none, or none that can be read.
func (s Schedule) entry(prefix string, now time.Time, old *recur.Entry, in *time.Location) (recur.Entry, error) {
	w := s.Rule
	e := recur.Entry{
		Definition: recur.Definition{Name: prefix + s.Name, Task: s.Topic},
		Meta:       recur.Meta{LastRunAt: now.Truncate(time.Microsecond)},
		Ours: recur.Ours{
			ID: uuid.NewString(), Prefix: prefix, Owner: s.owner, Celery: s.Celery != nil, Zone: w.Zone, SkipGaps: w.SkipGaps, Jitter: w.Jitter,
			Start: w.Start.UTC(), Until: w.Until.UTC(), MaxRuns: w.MaxRuns, Misfire: recur.Misfire(w.Misfire), MisfireLimit: w.MisfireLimit,
			Overlap: recur.Overlap(w.Overlap), Headers: maps.Clone(w.Headers), Source: w.RRule,
		},
	}
	if c := s.Celery; c != nil {
		e.Definition.Args, e.Definition.Kwargs, e.Definition.Options = c.Args, c.Kwargs, c.Options
	} else {
		e.Ours.Topic, e.Ours.HasBody, e.Ours.Body, e.Ours.ContentType = prefix+s.Topic, true, s.Body, s.ContentType
	}
	if err := s.setRule(&e, now, old); err != nil {
		return e, fmt.Errorf("%w: %w", wakebelltype.ErrInvalid, err)
	}
	paused := false
	if old != nil {
		o := &e.Ours
		o.ID, o.Run, o.Last, o.LastRun, o.Outbox = old.Ours.ID, old.Ours.Run, old.Ours.Last, old.LastRun(), old.Ours.Outbox
		if o.ID == "" {
			o.ID = uuid.NewString()
		}
		e.Meta.Runs, e.Meta.Zone, paused = old.Meta.Runs, old.Meta.Zone, !old.Enabled()
		if e.SameRule(*old) { // with another rule it starts again
			o.Fired = old.Ours.Fired
			if !old.Meta.LastRunAt.IsZero() {
				e.Meta.LastRunAt = old.Meta.LastRunAt
			}
		}
	}
	e.SetEnabled(!paused)
	if err := e.Resolve(in); err != nil {
		return e, fmt.Errorf("%w: %w", wakebelltype.ErrInvalid, err)
	}
	return e, nil
}

func (s Schedule) setRule(e *recur.Entry, now time.Time, old *recur.Entry) error {
	w := s.Rule
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
		return e.SetCrontab(recur.Crontab(*w.Crontab))
	case old != nil && old.Ours.Source == w.RRule && old.Ours.Zone == w.Zone && old.Ours.Start.Equal(w.Start) && // keep its DTSTART
		old.RepeatsAs(w.RRule, w.Zone) &&
		(w.Zone == "" || w.Zone == "UTC" || strings.Contains(old.Ours.RRule, "TZID=")): // it was stored in its zone
		e.Definition.Schedule, e.Ours.RRule = old.Definition.Schedule, old.Ours.RRule
		return nil
	}
	start := e.Meta.LastRunAt.Add(time.Microsecond) // so that the first instant is not missed
	if !w.Start.IsZero() {
		start = w.Start
	}
	rule, err := recur.ParseRRuleIn(w.RRule, w.Zone, start)
	if err != nil {
		return err
	}
	e.SetRRule(rule)
	return nil
}

// gridBefore returns the last instant up to now at a multiple of every from start,
// so that the next instant is one too; without a start it returns now.
func gridBefore(now, start time.Time, every time.Duration) time.Time {
	if start.IsZero() {
		return now
	}
	n := now.Sub(start) / every
	if start.Add(n * every).After(now) {
		n--
	}
	at := start.Add(n * every)
	if at.After(now) { // the distance overflows a Duration
		return now
	}
	return at
}
