// Package memo shares and caches reads, so that many browsers cost Redis as much as
// one.
package memo

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/usercode"
)

// maxKeys bounds the values that a Cache holds.
const maxKeys = 4096

// Cache caches the results of a read by key. Concurrent reads of a key share one
// call, which ends with the life of the cache, not with the context of the first caller. A read that
// takes long is cached longer: at least fifty times its duration, so that it takes at
// most a fiftieth of the time.
type Cache[T any] struct {
	life  context.Context //nolint:containedctx // of the cache, which outlives its calls
	ttl   time.Duration
	limit time.Duration // of a call

	mu      sync.Mutex
	entries map[string]*entry[T]
}

type entry[T any] struct {
	begun time.Time
	done  chan struct{} // closed when the call has ended
	until time.Time     // zero while the call runs
	value T
	err   error

	before *entry[T] // the value that this one replaces; nil: none
}

// New returns a cache whose values are used for ttl. A call has limit at most, and ends with
// life.
func New[T any](life context.Context, ttl, limit time.Duration) *Cache[T] {
	return &Cache[T]{life: life, ttl: ttl, limit: limit, entries: map[string]*entry[T]{}}
}

// Get returns the value of a key, from the cache or from read.
func (c *Cache[T]) Get(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	e := c.entry(ctx, key, read)
	select {
	case <-e.done:
		note(ctx, e.begun)
		return e.value, e.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}

// Soon is Get that waits for a short time. Then it returns the value before, if there is one:
// a page shows it with its age, and the next look has the new one.
func (c *Cache[T]) Soon(ctx context.Context, wait time.Duration, key string, read func(context.Context) (T, error)) (T, error) {
	e := c.entry(ctx, key, read)
	soon, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-e.done:
	case <-soon.Done():
		c.mu.Lock()
		before := e.before
		c.mu.Unlock()
		if before == nil || ctx.Err() != nil {
			var zero T
			return zero, context.Cause(soon)
		}
		e = before
	}
	note(ctx, e.begun)
	return e.value, e.err
}

// Have returns the value of a key that was read last, without reading; false if there is none.
func (c *Cache[T]) Have(ctx context.Context, key string) (value T, ok bool) {
	c.mu.Lock()
	e := c.entries[key]
	if e != nil && (e.until.IsZero() || e.err != nil) {
		e = e.before
	}
	c.mu.Unlock()
	if e == nil {
		return value, false
	}
	note(ctx, e.begun)
	return e.value, true
}

// Forget makes the next Get of all keys read again. Call it after a change.
func (c *Cache[T]) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}

func (c *Cache[T]) entry(ctx context.Context, key string, read func(context.Context) (T, error)) *entry[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	last := c.entries[key]
	if last != nil && (last.until.IsZero() || now.Before(last.until)) {
		return last
	}
	if len(c.entries) >= maxKeys {
		clear(c.entries)
	}
	e := &entry[T]{begun: now, done: make(chan struct{})}
	switch {
	case last == nil:
	case last.err != nil: // the value before it is still the last one
		e.before = last.before
	default:
		e.before = last
	}
	c.entries[key] = e
	go c.fill(context.WithoutCancel(ctx), e, read)
	return e
}

func (c *Cache[T]) fill(ctx context.Context, e *entry[T], read func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	e.err = usercode.Called("reading for the dashboard", func() (err error) {
		e.value, err = read(ctx)
		return err
	})
	c.mu.Lock()
	end := time.Now()
	e.until = end.Add(max(c.ttl, 50*end.Sub(e.begun)))
	if e.err != nil {
		e.until = end.Add(c.ttl)
	}
	if e.err == nil {
		e.before = nil
	}
	c.mu.Unlock()
	close(e.done)
}

// Oldest is the instant of the oldest value that was read with a context.
type Oldest struct {
	mu sync.Mutex
	at time.Time
}

type oldestKey struct{}

// Track returns a context with which caches note how old their values are.
func Track(ctx context.Context) (context.Context, *Oldest) {
	o := &Oldest{}
	return context.WithValue(ctx, oldestKey{}, o), o
}

func note(ctx context.Context, begun time.Time) {
	o, ok := ctx.Value(oldestKey{}).(*Oldest)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at.IsZero() || begun.Before(o.at) {
		o.at = begun
	}
}

// At returns when the oldest value was read; otherwise, if no value is from a cache.
func (o *Oldest) At(otherwise time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at.IsZero() || otherwise.Before(o.at) {
		return otherwise
	}
	return o.at
}
