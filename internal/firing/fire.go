package firing

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/usercode"
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

// mostCalls is how many calls the store carries out at once, while there are many due items.
const mostCalls = 2

// fire fires the due items. While the store fires some of many, it prepares others.
func (e *Engine) fire(ctx context.Context) (err error) {
	var sent []*call
	var ready []*attempt
	for more := !e.barred; more || len(ready)+len(sent) > 0; {
		if more && len(ready) == 0 {
			ready, err = e.prepare(ctx, len(sent) == 0)
			more = len(ready) == mostAtOnce && time.Now().Before(e.lookAt)
		}
		if len(sent) == mostCalls || len(sent) > 0 && len(ready) == 0 {
			if failure := e.land(ctx, sent[0]); failure != nil {
				err = failure
			}
			sent = sent[1:]
		}
		if err != nil || e.barred {
			e.putBack(ready)
			more, ready = false, nil
		}
		if len(ready) > 0 {
			n := recurring.FireBatch(firingsOf(ready))
			sent = append(sent, e.launch(ctx, ready[:n], len(ready) == mostAtOnce || len(sent) > 0))
			ready = ready[n:]
		}
	}
	return err
}

// prepare returns attempts to fire the due items, mostAtOnce at most. What is in an outbox is
// sent first, and waits while other calls run.
func (e *Engine) prepare(ctx context.Context, alone bool) (attempts []*attempt, err error) {
	now := e.clock()
	for len(attempts) < mostAtOnce {
		it := e.queue.first()
		if it == nil || it.at.After(now) {
			break
		}
		if len(it.entry.Ours.Outbox) > 0 {
			if !alone {
				break
			}
			if err := e.flush(ctx, it); err != nil {
				return attempts, err
			}
			continue
		}
		e.queue.put(it, time.Time{})
		if s := e.attempt(ctx, it, now); s != nil {
			attempts = append(attempts, s)
		}
	}
	return attempts, nil
}

// putBack queues the items of attempts again that were not sent, or whose call has failed.
func (e *Engine) putBack(attempts []*attempt) {
	for _, s := range attempts {
		if s.item.at.IsZero() {
			e.queue.put(s.item, e.clock())
		}
	}
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
	s, err := e.cfg.Maker.attempt(ctx, it, p, now)
	if err != nil {
		e.suspend(it, err)
		return nil
	}
	return s
}

// call is a batch of attempts that the store carries out.
type call struct {
	attempts []*attempt
	reply    recurring.FireReply
	err      error
	done     chan struct{} // closed when reply and err are set
}

func firingsOf(attempts []*attempt) []recurring.Firing {
	firings := make([]recurring.Firing, len(attempts))
	for i, s := range attempts {
		firings[i] = s.firing
	}
	return firings
}

// launch makes the store carry out attempts, meanwhile or before it returns.
func (e *Engine) launch(ctx context.Context, attempts []*attempt, meanwhile bool) *call {
	c, firings, dead := &call{attempts: attempts, done: make(chan struct{})}, firingsOf(attempts), e.dead
	fire := func() {
		defer close(c.done)
		c.err = usercode.Called("firing", func() (err error) { // of a hook of the client, for instance
			c.reply, err = e.cfg.Store.Fire(ctx, e.cfg.Token, dead, firings)
			return err
		})
	}
	if meanwhile {
		go fire() // ends with the call, for which land waits
	} else {
		fire()
	}
	return c
}

// land waits for a call and processes its results. If one of the attempts
// fails, the others are sent separately.
func (e *Engine) land(ctx context.Context, c *call) error {
	<-c.done
	switch {
	case c.err != nil && whole(ctx, c.err):
		e.putBack(c.attempts)
		return c.err
	case c.err != nil && len(c.attempts) == 1:
		e.retryLater(c.attempts[0].item, c.err)
		return nil
	case c.err != nil:
		for i := range c.attempts {
			if err := e.land(ctx, e.launch(ctx, c.attempts[i:i+1], false)); err != nil {
				e.putBack(c.attempts[i+1:])
				return err
			}
		}
		return nil
	}
	e.observe(c.reply.Now, c.reply.Lock)
	if c.reply.Barred {
		e.barred = true
		for _, s := range c.attempts {
			e.queue.put(s.item, s.firing.Due)
		}
		return nil
	}
	for i, s := range c.attempts {
		e.settle(ctx, s, c.reply.Outcomes[i], c.reply.Found[i], c.reply.Now)
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
	return e.land(ctx, e.launch(ctx, []*attempt{s}, false))
}
