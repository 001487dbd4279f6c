package wakebell

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
)

// ErrNoSchedule says that there is no recurring schedule of this name.
var ErrNoSchedule = recurring.ErrNoSchedule

// Schedules stores and inspects recurring schedules. They are kept under the
// keys of RedBeat, so that Python processes may do so too; see
// docs/schedules.md. A node whose Config has a Beat fires them.
//
// A Client with a Prefix has schedules of its own: it puts the prefix before their
// names, as before those of topics, and sees no others but those that a Python
// process has saved with a name and a task that begin with the prefix.
type Schedules struct {
	store *recurring.Store
	hand  firing.Hand
}

// Schedules are the recurring schedules of the Client's Redis.
func (c *Client) Schedules() *Schedules { return c.schedules }

func newSchedules(store *timers.Timers, cfg ClientConfig) *Schedules {
	b := recurring.New(store)
	return &Schedules{b, firing.Hand{Store: b, Maker: firing.Maker{
		Prefix: cfg.Prefix, Limit: cfg.PayloadLimit, Celery: cfg.Celery, Shares: b.Shares,
	}}}
}

// RecurringState is a recurring schedule as it is stored.
type RecurringState struct {
	Name  string
	Topic string // of its runs; of a Celery message its task
	Rule  string // when it fires, in words: "every 30s", "cron 0 9 * * 1-5"

	// Recurrence has what of it is beside the rule. Entries of Python have
	// none of it.
	Recurrence Recurrence

	Next    time.Time // when it is due next, in the past while it is overdue; zero: never
	LastRun time.Time // the latest instant that was fired; zero: none yet
	Runs    int64     // the number of the last run
	Paused  bool      // or disabled by Python
	Celery  bool      // its runs are Celery messages by its own word

	// Fault says why the entry cannot be read; then only Name is known beside
	// it. Such an entry is left alone until it is changed.
	Fault string
}

// Put stores recurring schedules, each in place of the one of its name. One that
// has the same rule goes on where it was, so that putting it again and again
// does not put it off; it stays paused if it was. Another rule begins anew. All
// are checked before the first is stored.
func (s *Schedules) Put(ctx context.Context, schedules ...Recurring) error {
	for _, r := range schedules {
		if err := r.validate(); err != nil {
			return fmt.Errorf("recurring schedule %s: %w", quoted(r.name), err)
		}
	}
	for _, r := range schedules {
		if err := firing.Again(ctx, func() error { return s.put(ctx, r) }); err != nil {
			return fmt.Errorf("recurring schedule %s: %w", quoted(r.name), err)
		}
	}
	return nil
}

func (s *Schedules) put(ctx context.Context, r Recurring) error {
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	found, err := s.found(ctx, r.name)
	if err != nil {
		return err
	}
	var old *recur.Entry
	if e, err := recur.Read(found, s.hand.Full(r.name), s.hand.Zone); err == nil {
		old = &e
	}
	e, err := r.entry(s.hand.Maker.Prefix, now, old, s.hand.Zone)
	if err != nil {
		return err
	}
	if err := s.hand.Maker.Check(ctx, &e); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return s.store.Put(ctx, s.hand.Full(r.name), found, e.Raw(), firing.ScoreAt(e, now))
}

// found is what there is in the place of a schedule that is to be written.
func (s *Schedules) found(ctx context.Context, name string) (recur.Raw, error) {
	raw, err := s.hand.Load(ctx, name)
	if errors.Is(err, ErrNoSchedule) {
		err = invalid("name", "%s is that of a schedule of another prefix", quoted(name))
	}
	return raw, err
}

// Get returns a recurring schedule. Error: ErrNoSchedule.
func (s *Schedules) Get(ctx context.Context, name string) (RecurringState, error) {
	_, e, err := s.hand.Read(ctx, name)
	if errors.Is(err, recur.ErrSyntax) {
		return RecurringState{Name: name, Fault: err.Error()}, nil
	}
	if err != nil {
		return RecurringState{}, err
	}
	return s.state(&e), nil
}

func (s *Schedules) state(e *recur.Entry) RecurringState {
	o, prefix := e.Ours, s.hand.Maker.Prefix
	state := RecurringState{
		Name: strings.TrimPrefix(e.Definition.Name, prefix), Topic: e.Topic(), Rule: e.Rule(), Next: e.Due(), LastRun: e.LastRun(),
		Runs: max(o.Run, e.Meta.Runs), Paused: !e.Enabled(), Celery: o.Celery,
		Recurrence: Recurrence{
			Cron: o.Cron, RRule: o.Source, Zone: o.Zone, SkipGaps: o.SkipGaps, Jitter: o.Jitter, Start: o.Start, Until: o.Until,
			MaxRuns: o.MaxRuns, Misfire: o.Misfire, MisfireLimit: o.MisfireLimit, Overlap: o.Overlap, Headers: o.Headers,
		},
	}
	if !o.Celery {
		state.Topic = strings.TrimPrefix(state.Topic, prefix)
	}
	return state
}

// List goes through all recurring schedules, those that cannot be read too, in
// no order. An error ends it.
func (s *Schedules) List(ctx context.Context) iter.Seq2[RecurringState, error] {
	return func(yield func(RecurringState, error) bool) {
		for name, err := range s.names(ctx) {
			var state RecurringState
			if err == nil {
				state, err = s.Get(ctx, name)
			}
			if errors.Is(err, ErrNoSchedule) {
				continue // it was deleted meanwhile
			}
			if !yield(state, err) || err != nil {
				return
			}
		}
	}
}

// names goes through the names that begin with the prefix, without it, each once.
func (s *Schedules) names(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		seen := map[string]bool{}
		for cursor := uint64(0); ; {
			members, next, err := s.store.Names(ctx, cursor)
			if err != nil {
				yield("", err)
				return
			}
			for _, m := range members {
				name, ok := strings.CutPrefix(m.Name, s.hand.Maker.Prefix)
				if ok && !seen[name] && !yield(name, nil) {
					return
				}
				seen[name] = true
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// Delete removes a recurring schedule; timers that it has fired stay. Error:
// ErrNoSchedule.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	found, err := s.remove(ctx, name, nil)
	if err == nil && !found {
		err = fmt.Errorf("%w: %s", ErrNoSchedule, quoted(name))
	}
	return err
}

// remove deletes a schedule that is this prefix's, and that a condition, if there
// is one, holds for; found says whether there was one.
func (s *Schedules) remove(ctx context.Context, name string, condition func(recur.Ours) bool) (found bool, err error) {
	err = firing.Again(ctx, func() error {
		raw, err := s.hand.Load(ctx, name)
		if errors.Is(err, ErrNoSchedule) {
			return nil
		}
		if err != nil {
			return err
		}
		if ours, err := recur.ReadOurs(raw.Ours); condition != nil && (err != nil || !condition(ours)) {
			return nil
		}
		found, err = s.store.Delete(ctx, s.hand.Full(name), raw.Ours)
		return err
	})
	return found, err
}

// Pause keeps a recurring schedule from firing, on a Python beat too, until
// Resume. It costs nothing meanwhile. Error: ErrNoSchedule.
func (s *Schedules) Pause(ctx context.Context, name string) error {
	return s.enable(ctx, name, false)
}

// Resume ends a pause. The schedule goes on with its next instant: what was
// paused was not missed. Error: ErrNoSchedule.
func (s *Schedules) Resume(ctx context.Context, name string) error {
	return s.enable(ctx, name, true)
}

func (s *Schedules) enable(ctx context.Context, name string, on bool) error {
	return firing.Again(ctx, func() error {
		raw, e, err := s.hand.Read(ctx, name)
		if err != nil || e.Enabled() == on {
			return err
		}
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		e.SetEnabled(on)
		if on {
			e.Skip(now)
		}
		return s.store.Put(ctx, s.hand.Full(name), raw, e.Raw(), firing.ScoreAt(e, now))
	})
}

// RunNow fires a recurring schedule now, beside its instants, also while it is
// paused, and returns the run. A lost reply does not fire it again. Error:
// ErrNoSchedule.
func (s *Schedules) RunNow(ctx context.Context, name string) (ScheduleRun, error) {
	return s.hand.RunNow(ctx, name)
}

// ScheduleRun is a run that was fired: of which schedule (without the prefix of the
// System, where the name begins with it), for which instant, when by Redis's
// clock, and its number.
type ScheduleRun = firing.Fire

// Preview returns the next n instants of a recurring schedule, at most 10,000,
// by Redis's clock; fewer where it ends. Error: ErrNoSchedule.
func (s *Schedules) Preview(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 0 || n > maxMisfires {
		return nil, invalid("n", "%d, want 0 to %d", n, maxMisfires)
	}
	_, e, err := s.hand.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	e.Within(ctx)
	all := e.Preview(now, n)
	return all, unfound(name, e.Err())
}

// unfound is the error of instants that were not found.
func unfound(name string, err error) error {
	if errors.Is(err, recur.ErrTooMuch) {
		err = fmt.Errorf("%w: recurring schedule %s: %w", ErrInvalid, quoted(name), err)
	}
	return err
}

// MaxBackfill is the most runs of one Backfill.
const MaxBackfill = 10_000

// Backfill fires the instants of a recurring schedule that lie from one instant
// to before another, whether they were fired or not, and returns how many. More
// than MaxBackfill are refused before the first. They do not count for MaxRuns. A
// lost reply does not fire them again.
// Errors: ErrNoSchedule, ErrInvalid.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time) (int, error) {
	if !from.Before(to) {
		return 0, invalid("from", "not before to")
	}
	_, e, err := s.hand.Read(ctx, name)
	if err != nil {
		return 0, err
	}
	e.Within(ctx)
	if _, more := e.Between(from, to, MaxBackfill); more {
		return 0, invalid("from, to", "more than %d runs", MaxBackfill)
	}
	if err := unfound(name, e.Err()); err != nil {
		return 0, err
	}
	n, _, err := s.hand.Backfill(ctx, name, from, to, MaxBackfill)
	return n, err
}
