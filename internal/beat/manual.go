package beat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops"
)

// Hand fires entries for people, whoever has the lock.
type Hand struct {
	Store *redisops.Beat
	Maker Maker
	Zone  *time.Location
}

const (
	mostTries = 50  // when somebody else changes the entry each time
	mostRuns  = 100 // of a backfill in one step
)

// Read reads an entry. Errors: [redisops.ErrNoSchedule], or one that wraps
// [recur.ErrSyntax].
func (h Hand) Read(ctx context.Context, name string) (recur.Raw, recur.Entry, error) {
	raws, err := h.Store.Load(ctx, name)
	if err != nil {
		return recur.Raw{}, recur.Entry{}, err
	}
	raw := raws[0]
	if raw.Definition == nil {
		return raw, recur.Entry{}, fmt.Errorf("%w: %q", redisops.ErrNoSchedule, name)
	}
	e, err := recur.Read(raw, name, h.Zone)
	if err == nil {
		err = h.Maker.check(&e)
	}
	if err != nil {
		err = fmt.Errorf("recurring schedule %q: %w", name, err)
	}
	return raw, e, err
}

// Again calls a step until nobody has changed the entry meanwhile.
func Again(ctx context.Context, step func() error) error {
	for range mostTries {
		if err := step(); !errors.Is(err, redisops.ErrChanged) || ctx.Err() != nil {
			return err
		}
	}
	return redisops.ErrChanged
}

// RunNow fires an entry now, beside its instants.
func (h Hand) RunNow(ctx context.Context, name string) (Fire, error) {
	now, err := h.Store.Now(ctx)
	if err != nil {
		return Fire{}, err
	}
	var fires []Fire
	err = Again(ctx, func() (err error) {
		fires, err = h.run(ctx, name, []time.Time{now.Truncate(time.Microsecond)}, true)
		return err
	})
	if err != nil {
		return Fire{}, err
	}
	return fires[0], nil
}

// Backfill fires the instants of an entry from one to before another, at most
// limit of them. They do not count for MaxRuns.
func (h Hand) Backfill(ctx context.Context, name string, from, to time.Time, limit int) (n int, more bool, err error) {
	_, e, err := h.Read(ctx, name)
	if err != nil {
		return 0, false, err
	}
	e.Within(ctx)
	due, more := e.Between(from, to, limit)
	if err := e.Err(); err != nil {
		return 0, more, err
	}
	for len(due) > 0 {
		part := due[:min(len(due), mostRuns)]
		if err := Again(ctx, func() error { _, err := h.run(ctx, name, part, false); return err }); err != nil {
			return n, more, err
		}
		n += len(part)
		due = due[len(part):]
	}
	return n, more, nil
}

// run fires runs of an entry and leaves its instants as they are.
func (h Hand) run(ctx context.Context, name string, due []time.Time, counts bool) ([]Fire, error) {
	raw, e, err := h.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	f := redisops.Firing{Name: name, Raw: raw, Meta: raw.Meta}
	after := e
	fires, err := h.Maker.fill(ctx, &f, &after, due, e.Ours.Overlap != recur.OverlapAllow)
	if err != nil {
		return nil, err
	}
	if !counts {
		after.Ours.Fired = e.Ours.Fired
	}
	if f.Score, err = h.score(ctx, after); err != nil {
		return nil, err
	}
	f.Ours = after.Ours.Bytes()
	if !e.Meta.LastRunAt.IsZero() {
		f.Meta = after.Meta.Bytes()
	}
	now, err := h.fire(ctx, f)
	if err != nil {
		return nil, err
	}
	for i := range fires {
		fires[i].Fired = now
	}
	return fires, h.flush(ctx, name, after, f)
}

// score is that of the next instant of an entry.
func (h Hand) score(ctx context.Context, e recur.Entry) (int64, error) {
	now, err := h.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	return ScoreAt(e, now), nil
}

// ScoreAt is the score of an entry, at an instant of Redis's clock.
func ScoreAt(e recur.Entry, now time.Time) int64 {
	p := e.Plan(now)
	switch {
	case len(p.Due) > 0:
		return recur.Score(p.Due[0])
	case !p.Last.IsZero():
		return recur.Score(p.Last)
	default:
		return recur.Score(p.Next)
	}
}

// fire carries out a firing, past the lock of somebody else.
func (h Hand) fire(ctx context.Context, f redisops.Firing) (time.Time, error) {
	reply, err := h.Store.Fire(ctx, "", redisops.Lock{}, []redisops.Firing{f})
	if err == nil && reply.Barred {
		reply, err = h.Store.Fire(ctx, "", reply.Lock, []redisops.Firing{f})
	}
	switch {
	case err != nil:
		return time.Time{}, err
	case reply.Barred, reply.Fates[0] == redisops.Changed:
		return time.Time{}, redisops.ErrChanged
	case reply.Fates[0] != redisops.Fired:
		return time.Time{}, fmt.Errorf("%w: %q", redisops.ErrNoSchedule, f.Name)
	}
	return reply.Now, nil
}

// flush sends what a firing has put into the outbox. What is not sent a beat
// sends.
func (h Hand) flush(ctx context.Context, name string, e recur.Entry, f redisops.Firing) error {
	if len(e.Ours.Outbox) == 0 {
		return nil
	}
	for _, p := range e.Ours.Outbox {
		if err := h.Store.Send(ctx, name, e.Ours.ID, p); err != nil {
			return err
		}
	}
	e.Ours.Outbox = nil
	f.Raw.Meta, f.Raw.Ours, f.Ours, f.Runs = f.Meta, f.Ours, e.Ours.Bytes(), nil
	if _, err := h.fire(ctx, f); err != nil && !errors.Is(err, redisops.ErrChanged) {
		return err
	}
	return nil
}
