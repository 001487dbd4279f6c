package shards

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Redrive turns dead letters of one shard after the other into timers again; see
// [timers.Timers.Redrive]. While timers move, or when the layout changes meanwhile, it goes
// on with one dead letter after the other.
func (s *Store) Redrive(ctx context.Context, topic string, o wakebelltype.RedriveOptions) (done wakebelltype.RedriveResult, err error) {
	if err := timers.CheckRedrive(&o); err != nil {
		return done, err
	}
	began, err := s.now(ctx)
	if err != nil {
		return done, err
	}
	l, err := s.layout(ctx, topic)
	if err == nil && !l.Moves() {
		if done, err = s.redriveResting(ctx, l, topic, o); !errors.Is(err, scripts.ErrStaleLayout) {
			return done, err
		}
		err = s.layouts.agree(ctx, topic)
	}
	if err != nil {
		return done, err
	}
	m := &movingRedrive{store: s, topic: topic, options: o, began: began, written: map[string]bool{}, done: done}
	err = m.run(ctx)
	return m.done, err
}

// redriveResting redrives dead letters of a topic whose timers do not move: each is in the
// shard of its timer.
func (s *Store) redriveResting(ctx context.Context, l sharding.Layout, topic string, o wakebelltype.RedriveOptions) (done wakebelltype.RedriveResult, err error) {
	names, f, err := s.deadOf(ctx, topic, o.Filter)
	if err != nil {
		return done, err
	}
	o.Filter = f
	report := o.Each
	for i, name := range names {
		if report != nil {
			o.Each = func(l wakebelltype.RedrivenLetter) {
				l.Entry = sharding.Place(l.Entry, name)
				report(l)
			}
		}
		part, err := s.at(l).Redrive(ctx, name, o)
		done.Redriven += part.Redriven
		done.Overwritten += part.Overwritten
		done.SkippedLive += part.SkippedLive
		done.SkippedBroken += part.SkippedBroken
		if err != nil {
			return done, err
		}
		if i == len(names)-1 {
			break
		}
		last := min(part.Redriven+part.Overwritten, int64(timers.RedrivePage(o.Rate))) // after which a shard does not wait
		if err := pace(ctx, topic, last, o.Rate); err != nil {
			return done, err
		}
	}
	return done, nil
}

// pace waits for as long as n timers may take at a rate per second.
func pace(ctx context.Context, topic string, n int64, rate int) error {
	if n == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("redrive on %q: %w", topic, ctx.Err())
	case <-time.After(time.Duration(n) * time.Second / time.Duration(rate)):
		return nil
	}
}

// movingRedrive redrives dead letters of a topic whose timers move. The timer of a dead
// letter, or one with its key, may be in another shard than the dead letter. So the timer is
// written as a schedule writes it, and then the dead letter is deleted. The key of the
// schedule makes it one timer if a later redrive repeats this because the dead letter is
// still there.
type movingRedrive struct {
	store   *Store
	topic   string
	options wakebelltype.RedriveOptions
	began   time.Time       // dead letters since then are left to the next call
	written map[string]bool // dead letters whose timers are written: they may have moved before they were deleted
	done    wakebelltype.RedriveResult
}

func (m *movingRedrive) run(ctx context.Context) error {
	names, f, err := m.store.deadOf(ctx, m.topic, m.options.Filter)
	if err != nil {
		return fmt.Errorf("redrive on %q: %w", m.topic, err)
	}
	seen := 0
	for i := len(names) - 1; i >= 0; i-- { // first where dead letters leave
		for after, more := "", true; more; {
			page, next, err := m.store.timers.DeadLetters(ctx, names[i], f, after, timers.RedrivePage(m.options.Rate))
			if err != nil {
				return err
			}
			made := int64(0)
			for j := range page {
				seen++
				wrote, err := m.redrive(ctx, names[i], &page[j])
				if err != nil {
					return fmt.Errorf("redrive on %q: %w", m.topic, err)
				}
				if wrote {
					made++
				}
			}
			if err := pace(ctx, m.topic, made, m.options.Rate); err != nil {
				return err
			}
			after, more = next, next != ""
		}
	}
	if m.options.Filter.Entry != "" && seen == 0 {
		return fmt.Errorf("%w: dead letter %q of %q", wakebelltype.ErrNotFound, m.options.Filter.Entry, m.topic)
	}
	return nil
}

// redrive redrives one dead letter of a physical topic, and reports whether it did.
func (m *movingRedrive) redrive(ctx context.Context, name string, d *timers.DeadLetter) (bool, error) {
	if d.At.After(m.began) {
		return false, nil
	}
	this := d.ID + "\x00" + scripts.ScoreText(d.At) + "\x00" + scripts.ScoreText(d.Activation)
	outcome := wakebelltype.RedriveSucceeded
	if !m.written[this] {
		var err error
		if outcome, err = m.write(ctx, this, d); err != nil {
			return false, err
		}
		m.done.Add(outcome)
		if m.options.Each != nil {
			m.options.Each(wakebelltype.RedrivenLetter{Entry: sharding.Place(d.Entry, name), ID: d.ID, Outcome: outcome})
		}
	}
	if outcome != wakebelltype.RedriveSucceeded && outcome != wakebelltype.RedriveOverwrote {
		return false, nil
	}
	m.written[this] = true
	_, err := m.store.timers.DeleteDead(ctx, name, wakebelltype.DeadFilter{Entry: d.Entry})
	if errors.Is(err, wakebelltype.ErrNotFound) { // it has moved, and comes later
		err = nil
	}
	m.store.timers.Metrics.Redriven(ctx, name, 1)
	return true, err
}

// write writes the timer of a dead letter.
func (m *movingRedrive) write(ctx context.Context, this string, d *timers.DeadLetter) (wakebelltype.RedriveOutcome, error) {
	e := timers.Entry{ID: d.ID, Payload: d.Payload, In: m.options.In, Policy: wakebelltype.PolicyKeep}
	if m.options.Overwrite {
		e.Policy = wakebelltype.PolicyReplace
	}
	if len(d.Key) <= timers.MaxKey {
		e.Key = d.Key
	}
	b := timers.NewBatch("", 1)
	if d.Payload == nil || b.Add(m.topic, &e) != nil {
		return wakebelltype.RedriveSkippedBroken, nil
	}
	// That a timer is in the way may be the stored answer to an earlier redrive: then a key of
	// this call asks again.
	for _, key := range []*timers.Key{timers.NewKey("redrive", this, []byte(m.topic)), timers.NewCallKey()} {
		stored, err := m.store.Write(ctx, key, b)
		if err != nil {
			return 0, err
		}
		switch stored[0].Outcome {
		case wakebelltype.OutcomeCreated:
			return wakebelltype.RedriveSucceeded, nil
		case wakebelltype.OutcomeReplaced, wakebelltype.OutcomeSuperseded:
			return wakebelltype.RedriveOverwrote, nil
		}
	}
	return wakebelltype.RedriveSkippedLive, nil
}
