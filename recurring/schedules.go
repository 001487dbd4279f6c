package recurring

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/beat"
	"github.com/wakebell/wakebell/internal/clientstore"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops"
)

// ErrNotFound says that there is no recurring schedule of this name.
var ErrNotFound = redisops.ErrNoSchedule

// Schedules stores and inspects recurring schedules. They are kept under the
// keys of RedBeat, so that Python processes may do so too; see
// docs/schedules.md. A node whose Config has a Beat fires them.
//
// A Client with a Prefix has schedules of its own: it puts the prefix before their
// names, as before those of topics, and sees no others but those that a Python
// process has saved with a name and a task that begin with the prefix.
type Schedules struct {
	store *redisops.Beat
	hand  beat.Hand
}

// Config configures Schedules; the zero value works.
type Config struct {
	// Keys are the base names of the Redis keys.
	Keys redisops.Keys

	// Prefix is put before the names of schedules and topics.
	Prefix string

	// PayloadLimit bounds the body of a run with its headers, in bytes; default
	// 1 MiB, at most 512 MiB.
	PayloadLimit int

	// Celery makes RunNow and Backfill send Celery messages for the entries that
	// Python processes stored, as SchedulerConfig.Celery does.
	Celery bool

	// Zone is the time zone of crontabs and relative intervals that name none.
	// Default UTC.
	Zone *time.Location

	// RetryFor is for how long a call is retried while Redis is unavailable.
	// 0, the default, means until the deadline of its context, or for 2 s without
	// one. Above 0 it bounds both. Negative: each call is made once.
	RetryFor time.Duration

	// Logger receives what no caller receives; nil means slog.Default().
	Logger *slog.Logger
}

// New makes Schedules on rdb, which the caller owns and closes. It does
// not connect to Redis. Error: ErrInvalid.
func New(rdb redis.UniversalClient, cfg Config) (*Schedules, error) {
	common := clientstore.Config{
		Keys: cfg.Keys, PayloadLimit: cfg.PayloadLimit, RetryFor: cfg.RetryFor, Logger: cfg.Logger,
	}.WithDefaults()
	timers, err := clientstore.Open(rdb, common)
	if err != nil {
		return nil, err
	}
	store := timers.Beat()
	return &Schedules{store, beat.Hand{Store: store, Zone: cfg.Zone, Maker: beat.Maker{
		Prefix: cfg.Prefix, Limit: common.PayloadLimit, Celery: cfg.Celery, Shares: store.Shares,
	}}}, nil
}

// State is a recurring schedule as it is stored.
type State struct {
	Name     string
	Topic    string // of its runs; of a Celery message its task
	RuleText string // when it fires, in words: "every 30s", "cron 0 9 * * 1-5"

	// Recurrence has what of it is beside the rule. Entries of Python have
	// none of it.
	Rule Rule

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
func (s *Schedules) Put(ctx context.Context, schedules ...Schedule) error {
	for _, r := range schedules {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("recurring schedule %s: %w", argument.Clip(r.Name), err)
		}
	}
	for _, r := range schedules {
		if err := beat.Again(ctx, func() error { return s.put(ctx, r) }); err != nil {
			return fmt.Errorf("recurring schedule %s: %w", argument.Clip(r.Name), err)
		}
	}
	return nil
}

func (s *Schedules) put(ctx context.Context, r Schedule) error {
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	found, err := s.found(ctx, r.Name)
	if err != nil {
		return err
	}
	var old *recur.Entry
	if e, err := recur.Read(found, s.hand.Full(r.Name), s.hand.Zone); err == nil {
		old = &e
	}
	e, err := r.entry(s.hand.Maker.Prefix, now, old, s.hand.Zone)
	if err != nil {
		return err
	}
	if err := s.hand.Maker.Check(ctx, &e); err != nil {
		return fmt.Errorf("%w: %w", redisops.ErrInvalid, err)
	}
	return s.store.Put(ctx, s.hand.Full(r.Name), found, e.Raw(), beat.ScoreAt(e, now))
}

// found is what there is in the place of a schedule that is to be written.
func (s *Schedules) found(ctx context.Context, name string) (recur.Raw, error) {
	raw, err := s.hand.Load(ctx, name)
	if errors.Is(err, ErrNotFound) {
		err = argument.Invalid("name", "%s is that of a schedule of another prefix", argument.Clip(name))
	}
	return raw, err
}

// Get returns a recurring schedule. Error: ErrNotFound.
func (s *Schedules) Get(ctx context.Context, name string) (State, error) {
	_, e, err := s.hand.Read(ctx, name)
	if errors.Is(err, recur.ErrSyntax) {
		return State{Name: name, Fault: err.Error()}, nil
	}
	if err != nil {
		return State{}, err
	}
	return s.state(&e), nil
}

func (s *Schedules) state(e *recur.Entry) State {
	o, prefix := e.Ours, s.hand.Maker.Prefix
	state := State{
		Name: strings.TrimPrefix(e.Definition.Name, prefix), Topic: e.Topic(), RuleText: e.Rule(), Next: e.Due(), LastRun: e.LastRun(),
		Runs: max(o.Run, e.Meta.Runs), Paused: !e.Enabled(), Celery: o.Celery,
		Rule: Rule{
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
func (s *Schedules) List(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		for name, err := range s.Names(ctx) {
			var state State
			if err == nil {
				state, err = s.Get(ctx, name)
			}
			if errors.Is(err, ErrNotFound) {
				continue // it was deleted meanwhile
			}
			if !yield(state, err) || err != nil {
				return
			}
		}
	}
}

// Names yields the names of all recurring schedules, each once, in no order. An
// error ends it.
func (s *Schedules) Names(ctx context.Context) iter.Seq2[string, error] {
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
// ErrNotFound.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	found, err := s.remove(ctx, name, nil)
	if err == nil && !found {
		err = fmt.Errorf("%w: %s", ErrNotFound, argument.Clip(name))
	}
	return err
}

// remove deletes a schedule that is this prefix's, and that a condition, if there
// is one, holds for; found says whether there was one.
func (s *Schedules) remove(ctx context.Context, name string, condition func(recur.Ours) bool) (found bool, err error) {
	err = beat.Again(ctx, func() error {
		raw, err := s.hand.Load(ctx, name)
		if errors.Is(err, ErrNotFound) {
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
// Resume. It costs nothing meanwhile. Error: ErrNotFound.
func (s *Schedules) Pause(ctx context.Context, name string) error {
	return s.enable(ctx, name, false)
}

// Resume ends a pause. The schedule goes on with its next instant: what was
// paused was not missed. Error: ErrNotFound.
func (s *Schedules) Resume(ctx context.Context, name string) error {
	return s.enable(ctx, name, true)
}

func (s *Schedules) enable(ctx context.Context, name string, on bool) error {
	return beat.Again(ctx, func() error {
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
		return s.store.Put(ctx, s.hand.Full(name), raw, e.Raw(), beat.ScoreAt(e, now))
	})
}

// RunNow fires a recurring schedule now, beside its instants, also while it is
// paused, and returns the run. A lost reply does not fire it again. Error:
// ErrNotFound.
func (s *Schedules) RunNow(ctx context.Context, name string) (Run, error) {
	fire, err := s.hand.RunNow(ctx, name)
	return Run{Name: fire.Name, Due: fire.Due, Fired: fire.Fired, Number: fire.Run}, err
}

// Run is a run that was fired.
type Run struct {
	Name   string    // of the schedule, without the prefix where the name begins with it
	Due    time.Time // the instant that it was fired for
	Fired  time.Time // when it was fired, by Redis's clock
	Number int64     // its number, from 1
}

// Preview returns the next n instants of a recurring schedule, at most 10,000,
// by Redis's clock; fewer where it ends. Error: ErrNotFound.
func (s *Schedules) Preview(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 0 || n > MaxBackfill {
		return nil, argument.Invalid("n", "%d, want 0 to %d", n, MaxBackfill)
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
		err = fmt.Errorf("%w: recurring schedule %s: %w", redisops.ErrInvalid, argument.Clip(name), err)
	}
	return err
}

// MaxBackfill is the most runs of one Backfill.
const MaxBackfill = 10_000

// Backfill fires the instants of a recurring schedule that lie from one instant
// to before another, whether they were fired or not, and returns how many. More
// than MaxBackfill are refused before the first. They do not count for MaxRuns. A
// lost reply does not fire them again.
// Errors: ErrNotFound, ErrInvalid.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time) (int, error) {
	if !from.Before(to) {
		return 0, argument.Invalid("from", "not before to")
	}
	_, e, err := s.hand.Read(ctx, name)
	if err != nil {
		return 0, err
	}
	e.Within(ctx)
	if _, more := e.Between(from, to, MaxBackfill); more {
		return 0, argument.Invalid("from, to", "more than %d runs", MaxBackfill)
	}
	if err := unfound(name, e.Err()); err != nil {
		return 0, err
	}
	n, _, err := s.hand.Backfill(ctx, name, from, to, MaxBackfill)
	return n, err
}

// Operator is what Schedules are for those who need not know where
// Redis is: here, or as package remote has it.
type Operator interface {
	Put(ctx context.Context, schedules ...Schedule) error
	Get(ctx context.Context, name string) (State, error)
	List(ctx context.Context) iter.Seq2[State, error]
	Delete(ctx context.Context, name string) error
	Pause(ctx context.Context, name string) error
	Resume(ctx context.Context, name string) error
	RunNow(ctx context.Context, name string) (Run, error)
	Preview(ctx context.Context, name string, n int) ([]time.Time, error)
	Export(ctx context.Context, name string) (Dump, error)
	Import(ctx context.Context, d Dump) error
	Backfill(ctx context.Context, name string, from, to time.Time) (int, error)
}
