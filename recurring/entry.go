package recurring

import (
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops"
)

// entry is what is to be stored in place of an entry that was found; old is nil
// where there was none that can be read.
func (r Schedule) entry(prefix string, now time.Time, old *recur.Entry, in *time.Location) (recur.Entry, error) {
	w := r.Rule
	e := recur.Entry{
		Definition: recur.Definition{Name: prefix + r.Name, Task: r.Topic},
		Meta:       recur.Meta{LastRunAt: now.Truncate(time.Microsecond)},
		Ours: recur.Ours{
			ID: uuid.NewString(), Prefix: prefix, Owner: r.owner, Celery: r.Celery != nil, Zone: w.Zone, SkipGaps: w.SkipGaps, Jitter: w.Jitter,
			Start: w.Start.UTC(), Until: w.Until.UTC(), MaxRuns: w.MaxRuns, Misfire: w.Misfire, MisfireLimit: w.MisfireLimit,
			Overlap: w.Overlap, Headers: maps.Clone(w.Headers), Source: w.RRule,
		},
	}
	if c := r.Celery; c != nil {
		e.Definition.Args, e.Definition.Kwargs, e.Definition.Options = c.Args, c.Kwargs, c.Options
	} else {
		e.Ours.Topic, e.Ours.HasBody, e.Ours.Body, e.Ours.ContentType = prefix+r.Topic, true, r.Body, r.ContentType
	}
	if err := r.setRule(&e, now, old); err != nil {
		return e, fmt.Errorf("%w: %w", redisops.ErrInvalid, err)
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
		return e, fmt.Errorf("%w: %w", redisops.ErrInvalid, err)
	}
	return e, nil
}

func (r Schedule) setRule(e *recur.Entry, now time.Time, old *recur.Entry) error {
	w := r.Rule
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
