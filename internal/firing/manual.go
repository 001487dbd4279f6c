package firing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Manual fires entries on request of an operator. It does not need the beat's lock.
type Manual struct {
	Store *recurring.Store
	Maker Maker
	Zone  *time.Location
}

const (
	mostTries = 50  // if the entry is changed concurrently each time
	mostRuns  = 100 // of a backfill in one step
)

// Full returns the name of an entry with the prefix.
func (h Manual) Full(name string) string { return h.Maker.Prefix + name }

// Load reads the bytes of an entry of this prefix; none if it is absent. Error:
// [recurring.ErrNoSchedule] for one of another prefix.
func (h Manual) Load(ctx context.Context, name string) (recur.Raw, error) {
	raws, err := h.Store.Load(ctx, h.Full(name))
	if err != nil {
		return recur.Raw{}, err
	}
	if raws[0].Definition != nil && !h.Maker.Owns(h.Full(name), raws[0]) {
		return recur.Raw{}, fmt.Errorf("%w: %q", recurring.ErrNoSchedule, name)
	}
	return raws[0], nil
}

// Read reads an entry. Errors: [recurring.ErrNoSchedule], or one that wraps
// [recur.ErrSyntax].
func (h Manual) Read(ctx context.Context, name string) (recur.Raw, recur.Entry, error) {
	raw, err := h.Load(ctx, name)
	if err != nil {
		return recur.Raw{}, recur.Entry{}, err
	}
	if raw.Definition == nil {
		return raw, recur.Entry{}, fmt.Errorf("%w: %q", recurring.ErrNoSchedule, name)
	}
	e, err := recur.Read(raw, h.Full(name), h.Zone)
	if err == nil {
		err = h.Maker.check(&e)
	}
	if err != nil {
		err = fmt.Errorf("recurring schedule %q: %w", name, err)
	}
	return raw, e, err
}

// Again repeats a step while the entry is changed concurrently.
func Again(ctx context.Context, step func() error) error {
	for range mostTries {
		if err := step(); !errors.Is(err, recurring.ErrChanged) || ctx.Err() != nil {
			return err
		}
	}
	return recurring.ErrChanged
}

// key returns the idempotency key of a call: that of ctx, if the caller has set one,
// or a new one, which covers retries by go-redis.
func (h Manual) key(ctx context.Context, call string) *timers.Key {
	key := messages.Once(ctx)
	if key == "" {
		return timers.NewCallKey()
	}
	return timers.NewKey(h.Maker.Prefix+"\x00"+messages.Principal(ctx)+"\x00peer", key, []byte(call))
}

// RunNow fires an entry now, in addition to its instants.
func (h Manual) RunNow(ctx context.Context, name string) (Fire, error) {
	now, err := h.Store.Now(ctx)
	if err != nil {
		return Fire{}, err
	}
	key := h.key(ctx, "run "+name)
	var fire Fire
	err = Again(ctx, func() (err error) {
		fire, err = h.run(ctx, name, []time.Time{now.Truncate(time.Microsecond)}, true, key, now)
		return err
	})
	return fire, err
}

// Backfill fires the instants of an entry in [from, to), at most limit of them. They do
// not count for MaxRuns.
func (h Manual) Backfill(ctx context.Context, name string, from, to time.Time, limit int) (n int, more bool, err error) {
	_, e, err := h.Read(ctx, name)
	if err != nil {
		return 0, false, err
	}
	e.Within(ctx)
	due, more := e.Between(from, to, limit)
	if err := e.Err(); err != nil {
		return 0, more, err
	}
	now, err := h.Store.Now(ctx)
	if err != nil {
		return 0, more, err
	}
	key := h.key(ctx, fmt.Sprintf("backfill %s %d %d", name, from.UnixMicro(), to.UnixMicro()))
	for len(due) > 0 {
		part := due[:min(len(due), mostRuns)]
		if err := Again(ctx, func() error { _, err := h.run(ctx, name, part, false, key.Part(n), now); return err }); err != nil {
			return n, more, err
		}
		n += len(part)
		due = due[len(part):]
	}
	return n, more, nil
}

// run fires runs of an entry under a key, without a change of its instants, and returns
// the last run.
func (h Manual) run(ctx context.Context, name string, due []time.Time, counts bool, key *timers.Key, now time.Time) (Fire, error) {
	raw, e, err := h.Read(ctx, name)
	if err != nil {
		return Fire{}, err
	}
	f := recurring.Firing{Name: h.Full(name), Raw: raw, Meta: raw.Meta, Once: key}
	after := e
	fires, err := h.Maker.fill(ctx, &f, &after, due, e.Ours.Overlap != recur.OverlapAllow, now)
	if err != nil {
		return Fire{}, err
	}
	if !counts {
		after.Ours.Fired = e.Ours.Fired
	}
	if f.Score, err = h.score(ctx, after); err != nil {
		return Fire{}, err
	}
	f.Ours = after.Ours.Bytes()
	if !e.Meta.LastRunAt.IsZero() {
		f.Meta = after.Meta.Bytes()
	}
	last := fires[len(fires)-1]
	f.Keep = fmt.Sprintf("%d %d", last.Run, last.Due.UnixMicro())
	reply, err := h.fire(ctx, f)
	if err != nil {
		return Fire{}, err
	}
	if reply.Outcomes[0] == recurring.Fired {
		for _, f := range fires {
			f.span.End()
		}
	}
	last.Fired = reply.Now
	if reply.Outcomes[0] == recurring.Done {
		var us int64
		if _, err := fmt.Sscan(reply.Kept, &last.Run, &us); err != nil {
			return Fire{}, fmt.Errorf("decode the stored result of %q: %w", name, err)
		}
		last.Due = time.UnixMicro(us).UTC()
		if f.Raw, after, err = h.Read(ctx, name); err != nil {
			return last, ignore(err, recurring.ErrNoSchedule)
		}
		f.Meta, f.Ours, f.Score = f.Raw.Meta, f.Raw.Ours, ScoreAt(after, reply.Now)
	}
	return last, h.flush(ctx, f, after)
}

func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// score returns the score of the next instant of an entry.
func (h Manual) score(ctx context.Context, e recur.Entry) (int64, error) {
	now, err := h.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	return ScoreAt(e, now), nil
}

// ScoreAt returns the score of an entry at an instant of Redis's clock.
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

// fire carries out a firing, despite the lock of another beat.
func (h Manual) fire(ctx context.Context, f recurring.Firing) (recurring.FireReply, error) {
	reply, err := h.Store.Fire(ctx, "", recurring.Lock{}, []recurring.Firing{f})
	if err == nil && reply.Barred {
		reply, err = h.Store.Fire(ctx, "", reply.Lock, []recurring.Firing{f})
	}
	switch {
	case err != nil:
		return reply, err
	case reply.Barred, reply.Outcomes[0] == recurring.Changed:
		return reply, recurring.ErrChanged
	case reply.Outcomes[0] != recurring.Fired && reply.Outcomes[0] != recurring.Done:
		return reply, fmt.Errorf("%w: %q", recurring.ErrNoSchedule, f.Name)
	}
	return reply, nil
}

// flush sends the outbox of a firing. If it fails, a beat sends the rest.
func (h Manual) flush(ctx context.Context, f recurring.Firing, e recur.Entry) error {
	if len(e.Ours.Outbox) == 0 {
		return nil
	}
	for _, p := range e.Ours.Outbox {
		if err := h.Store.Send(ctx, f.Name, e.Ours.ID, p); err != nil {
			return err
		}
	}
	e.Ours.Outbox = nil
	f.Raw.Meta, f.Raw.Ours, f.Ours, f.Runs, f.Once = f.Meta, f.Ours, e.Ours.Bytes(), nil, nil
	_, err := h.fire(ctx, f)
	return ignore(err, recurring.ErrChanged)
}
