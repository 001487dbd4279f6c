package firing

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/recurring"
)

// attempt is an item that is being fired, with its new state.
type attempt struct {
	item   *item
	firing recurring.Firing
	after  recur.Entry // the entry after the firing
	next   time.Time
	fires  []Fire
	skips  bool // it fires nothing, because the instant was missed
}

// fire fires due items, at most one batch.
func (e *Engine) fire(ctx context.Context) error {
	if e.barred {
		return nil
	}
	now := e.clock()
	var attempts []*attempt
	for len(attempts) < mostAtOnce {
		it := e.queue.first()
		if it == nil || it.at.After(now) {
			break
		}
		if len(it.entry.Ours.Outbox) > 0 {
			if err := e.flush(ctx, it); err != nil {
				return err
			}
			continue
		}
		e.queue.put(it, time.Time{})
		if s := e.attempt(ctx, it, now); s != nil {
			attempts = append(attempts, s)
		}
	}
	for len(attempts) > 0 {
		firings := make([]recurring.Firing, len(attempts))
		for i, s := range attempts {
			firings[i] = s.firing
		}
		n := recurring.FireBatch(firings)
		if err := e.send(ctx, attempts[:n]); err != nil {
			for _, s := range attempts {
				if s.item.at.IsZero() {
					e.queue.put(s.item, now)
				}
			}
			return err
		}
		attempts = attempts[n:]
	}
	return nil
}

// attempt computes the new state of a due item. It returns nil if there is nothing to
// fire; the item is then queued again if necessary.
func (e *Engine) attempt(ctx context.Context, it *item, now time.Time) *attempt {
	if it.gone { // the store removes it from the schedule
		return &attempt{item: it, firing: recurring.Firing{Name: it.name, Raw: it.raw}}
	}
	p := it.entry.Plan(now)
	if err := it.entry.Err(); err != nil { // what is due fires; the next instant is unknown
		e.cfg.Log.Error("the next run of a recurring schedule cannot be computed", "name", it.name, "err", err)
	}
	if p.Last.IsZero() {
		e.queue.put(it, p.Next)
		return nil
	}
	s, err := e.cfg.Maker.attempt(ctx, it, p)
	if err != nil {
		e.suspend(it, err)
		return nil
	}
	return s
}

// send makes the store carry out attempts. If one of them fails, the others are sent
// separately.
func (e *Engine) send(ctx context.Context, attempts []*attempt) error {
	firings := make([]recurring.Firing, len(attempts))
	for i, s := range attempts {
		firings[i] = s.firing
	}
	reply, err := e.cfg.Store.Fire(ctx, e.cfg.Token, e.dead, firings)
	switch {
	case err != nil && whole(ctx, err):
		return err
	case err != nil && len(attempts) == 1:
		e.retryLater(attempts[0].item, err)
		return nil
	case err != nil:
		for i := range attempts {
			if err := e.send(ctx, attempts[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	e.observe(reply.Now, reply.Lock)
	if reply.Barred {
		e.barred = true
		for _, s := range attempts {
			e.queue.put(s.item, s.firing.Due)
		}
		return nil
	}
	for i, s := range attempts {
		e.settle(ctx, s, reply.Outcomes[i], reply.Found[i], reply.Now)
	}
	return nil
}

// settle processes the result of an attempt.
func (e *Engine) settle(ctx context.Context, s *attempt, outcome recurring.Outcome, found recur.Raw, now time.Time) {
	it := s.item
	switch outcome {
	case recurring.Fired:
		it.raw.Meta, it.raw.Ours = s.firing.Meta, s.firing.Ours
		it.entry, it.tries = s.after, 0
		it.score = float64(s.firing.Score)
		if e.queue.put(it, s.next); len(it.entry.Ours.Outbox) > 0 {
			e.queue.put(it, now)
		}
		e.measure(ctx, s, now)
		for _, f := range s.fires {
			f.span.End()
			if f.Fired = now; e.cfg.OnFire != nil {
				e.cfg.OnFire(f)
			}
		}
	case recurring.Changed:
		// Its score is unknown. The next look reads it again unless its score is the
		// computed one, which another node may have written.
		e.take(it, found)
		it.score = float64(scoreOf(it))
	case recurring.Gone:
		delete(e.items, it.name)
	case recurring.Early:
		e.queue.put(it, later(s.firing.Due, now.Add(time.Microsecond)))
	case recurring.Overlapping:
		e.overlap(ctx, it, now)
	case recurring.Unreadable:
		e.suspend(it, errNoHash)
	}
}

// scoreOf returns the score that Wakebell writes for the entry.
func scoreOf(it *item) int64 { return recur.Score(it.at) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// overlap waits until the timer of the previous run is gone, or skips this run.
func (e *Engine) overlap(ctx context.Context, it *item, now time.Time) {
	if it.entry.Ours.Overlap == recur.OverlapQueue {
		if it.tries++; it.tries == 1 {
			e.cfg.Metrics.Overlapped(ctx, it.entry.Topic(), "queue")
		}
		e.queue.put(it, now.Add(backoff.Exponential(overlapFirst, it.tries-1, overlapLimit)))
		return
	}
	it.passing = true
	e.cfg.Metrics.Overlapped(ctx, it.entry.Topic(), "skip")
	e.queue.put(it, now)
}

// measure records the runs of an attempt, and the instants that were missed. An attempt
// without a run either skips an instant because of its misfire rule or because the
// previous run continues, or it clears an outbox.
func (e *Engine) measure(ctx context.Context, s *attempt, now time.Time) {
	topic, missed := s.after.Topic(), 0
	for _, f := range s.fires {
		e.cfg.Metrics.Fired(ctx, topic, now.Sub(f.Due))
		if now.Sub(f.Due) > recur.Grace {
			missed++
		}
	}
	if len(s.fires) == 0 && s.skips {
		missed = 1
	}
	e.cfg.Metrics.Misfired(ctx, topic, missed)
}

// flush writes the timers of an outbox to their topics, and clears the outbox.
func (e *Engine) flush(ctx context.Context, it *item) error {
	for _, p := range it.entry.Ours.Outbox {
		err := e.cfg.Store.Send(ctx, it.name, it.entry.Ours.ID, p)
		if err != nil && whole(ctx, err) {
			return err
		}
		if err != nil {
			e.retryLater(it, err)
			return nil
		}
	}
	after := it.entry
	after.Ours.Outbox = nil
	e.queue.put(it, time.Time{})
	s := &attempt{item: it, after: after, next: after.Plan(e.now).Next, firing: recurring.Firing{
		Name: it.name, Raw: it.raw, Meta: it.raw.Meta, Ours: after.Ours.Bytes(),
	}}
	if p := after.Plan(e.now); !p.Last.IsZero() {
		s.next = p.Last
	}
	s.firing.Score = recur.Score(s.next)
	if err := e.send(ctx, []*attempt{s}); err != nil {
		e.queue.put(it, e.now)
		return err
	}
	return nil
}
