// Package firing fires recurring schedules. An [Engine] has a copy of the schedule in
// Redis, orders the entries by their next instants, and makes the store fire those
// that are due.
//
// Any number of engines may run on any number of nodes, without a leader. An engine
// decides by the bytes of an entry that it has in memory, and the store fires the
// entry only if its bytes are still the same; otherwise it returns the new bytes. An
// idle engine therefore needs few commands: it reads the scores every few seconds, and
// the entries whose score has changed.
package firing

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Config configures an Engine.
type Config struct {
	Store  *recurring.Store
	Log    *slog.Logger
	Maker  Maker
	Zone   *time.Location // of crontabs without their own; nil: UTC
	Token  string         // of the lock; empty: the lock is not taken
	OnFire func(Fire)     // called for each run; may be nil

	Metrics *metrics.Metrics // nil measures nothing

	// MaxInterval is how long a Python beat may take to renew its lock. It counts
	// as dead 30 s later.
	MaxInterval time.Duration

	LookEvery time.Duration // 0: 4 s
}

// Fire is a run that was fired.
type Fire struct {
	Name  string
	Due   time.Time
	Fired time.Time // by Redis's clock
	Run   int64

	span tracing.Firing
}

const (
	defaultLook  = 4 * time.Second
	lookAhead    = 2 * time.Second // further than the next look
	page         = 1000
	maxDuePages  = 3
	mostAtOnce   = 500
	overlapFirst = 100 * time.Millisecond
	overlapLimit = time.Second
	retryFirst   = time.Second
	retryLimit   = time.Minute
)

// Engine fires the entries of a schedule. It belongs to one goroutine.
type Engine struct {
	cfg   Config
	items map[string]*item
	queue queue

	now      time.Time // Redis's clock
	nowAt    time.Time // when that was
	lookAt   time.Time // local
	rank     int       // of the next page
	complete bool      // all pages were read once

	lock   recurring.Lock // of another beat, as last seen
	lockAt time.Time      // since when, by Redis's clock
	dead   recurring.Lock // its holder counts as dead
	barred bool

	warned bool // of a zone that differs
}

// New returns an engine without entries.
func New(cfg Config) *Engine {
	if cfg.LookEvery == 0 {
		cfg.LookEvery = defaultLook
	}
	if cfg.Zone == nil {
		cfg.Zone = time.UTC
	}
	return &Engine{cfg: cfg, items: map[string]*item{}}
}

// Hint makes the next turn read the schedule.
func (e *Engine) Hint() { e.lookAt = time.Time{} }

// Turn fires what is due and returns the time until the next turn is needed. After an
// error the turn may be repeated.
func (e *Engine) Turn(ctx context.Context) (wait time.Duration, err error) {
	if now := time.Now(); !now.Before(e.lookAt) || !e.complete {
		if err := e.look(ctx); err != nil {
			return 0, err
		}
		e.lookAt = now.Add(e.cfg.LookEvery)
	}
	if err := e.fire(ctx); err != nil {
		return 0, err
	}
	if !e.complete {
		return 0, nil
	}
	wait = time.Until(e.lookAt)
	if next := e.queue.first(); next != nil && !e.barred {
		wait = min(wait, next.at.Sub(e.clock()))
	}
	return max(wait, 0), nil
}

// clock estimates Redis's clock without a command. It is late by the transit time of
// the last answer.
func (e *Engine) clock() time.Time { return e.now.Add(time.Since(e.nowAt)) }

func (e *Engine) observe(now time.Time, lock recurring.Lock) {
	e.now, e.nowAt = now, time.Now()
	e.judge(lock)
}

// dying is the time after MaxInterval at which the holder of the lock counts as dead.
const dying = 30 * time.Second

// judge decides whether the lock of another beat prevents firing. A renewed lock ends
// later than before.
func (e *Engine) judge(lock recurring.Lock) {
	if lock.Holder == "" || lock.Holder == e.cfg.Token {
		e.lock, e.dead, e.barred = recurring.Lock{}, recurring.Lock{}, false
		return
	}
	moved := lock.Ends - e.lock.Ends
	if lock.Holder != e.lock.Holder || moved > 1000 || moved < -1000 {
		if lock.Holder != e.lock.Holder {
			e.cfg.Log.Info("another beat has the lock", "token", lock.Holder)
		}
		e.lock, e.lockAt, e.dead, e.barred = lock, e.now, recurring.Lock{}, true
		return
	}
	if e.barred && e.now.Sub(e.lockAt) >= e.cfg.MaxInterval+dying && e.overdue() {
		e.cfg.Log.Warn("the holder of the lock counts as dead", "token", lock.Holder, "silent_for", e.now.Sub(e.lockAt))
		e.dead, e.barred = e.lock, false
	}
}

// overdue reports whether an entry should have been fired by now.
func (e *Engine) overdue() bool {
	next := e.queue.first()
	return next != nil && next.at.Before(e.now)
}

// look reads the entries that are due soon, and the next page of all entries.
func (e *Engine) look(ctx context.Context) error {
	horizon := e.cfg.LookEvery + lookAhead
	for n := range maxDuePages {
		size := page
		if n > 0 {
			size = 0
		}
		looked, err := e.cfg.Store.Look(ctx, e.cfg.Token, horizon, n*page, e.rank, size)
		if err != nil {
			return err
		}
		e.observe(looked.Now, looked.Lock)
		if err := e.load(ctx, append(looked.Due, looked.Page...)); err != nil {
			return err
		}
		if n == 0 {
			if e.rank += page; len(looked.Page) < page {
				e.rank, e.complete = 0, true
			}
		}
		if len(looked.Due) < page || !e.complete {
			return nil
		}
	}
	return nil
}

// load reads the entries whose score has changed.
func (e *Engine) load(ctx context.Context, members []recurring.Member) error {
	var names []string
	scores := map[string]float64{}
	for _, m := range members {
		if _, twice := scores[m.Name]; twice {
			continue
		}
		if known := e.items[m.Name]; known == nil || known.score != m.Score {
			names = append(names, m.Name)
			scores[m.Name] = m.Score
		}
	}
	raws, err := e.cfg.Store.Load(ctx, names...)
	if err != nil {
		return err
	}
	for i, name := range names {
		it := e.items[name]
		if it == nil {
			it = &item{name: name, place: -1}
			e.items[name] = it
		}
		it.score = scores[name]
		e.take(it, raws[i])
	}
	return nil
}

// take updates an item with the bytes of its entry.
func (e *Engine) take(it *item, raw recur.Raw) {
	it.raw, it.tries = raw, 0
	if raw.Definition == nil {
		e.queue.put(it, e.now) // firing removes it from the schedule
		it.entry, it.gone = recur.Entry{}, true
		return
	}
	it.gone = false
	if ours, err := recur.ReadOurs(raw.Ours); err == nil && !e.cfg.Maker.Fires(ours) {
		it.entry = recur.Entry{}
		e.queue.put(it, time.Time{}) // the beats of its prefix fire it
		return
	}
	entry, err := recur.Read(raw, it.name, e.cfg.Zone)
	if err == nil {
		err = e.cfg.Maker.check(&entry)
	}
	if err != nil {
		e.suspend(it, err)
		return
	}
	if warning := entry.ZoneWarning(); warning != "" && !e.warned {
		e.warned = true // once: all entries of a beat with another zone have it
		e.cfg.Log.Warn("the beats of recurring schedules seem to differ in their time zones", "name", it.name, "reason", warning)
	}
	it.entry = entry
	e.plan(it)
}

// suspend ignores an entry until it is changed.
func (e *Engine) suspend(it *item, err error) {
	e.cfg.Log.Error("recurring schedule is not fired until it is changed", "name", it.name, "err", err)
	it.entry = recur.Entry{}
	e.queue.put(it, time.Time{})
}

// plan queues an item for its next instant.
func (e *Engine) plan(it *item) {
	if len(it.entry.Ours.Outbox) > 0 {
		e.queue.put(it, e.now)
		return
	}
	p := it.entry.Plan(e.now)
	at := p.Next
	if !p.Last.IsZero() {
		at = p.Last
		if len(p.Due) > 0 {
			at = p.Due[0]
		}
	}
	if err := it.entry.Err(); err != nil && p.Last.IsZero() {
		e.suspend(it, err)
		return
	}
	e.queue.put(it, at)
}

// retryLater delays an item after an error that affects only this item.
func (e *Engine) retryLater(it *item, err error) {
	it.tries++
	delay := backoff.Exponential(retryFirst, it.tries-1, retryLimit)
	e.cfg.Log.Error("recurring schedule was not fired; it is retried and no run is lost", "name", it.name, "again_in", delay, "err", err)
	e.queue.put(it, e.clock().Add(delay))
}

// whole reports whether an error concerns the server, the client or the caller, not a single
// entry.
func whole(ctx context.Context, err error) bool {
	var panicked *usercode.Panic
	return ctx.Err() != nil || errors.As(err, &panicked) || errors.Is(err, exchange.ErrUnavailable) || errors.Is(err, wakebelltype.ErrMemoryFull)
}
