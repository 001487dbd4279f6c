// Package loglimit bounds how many lines of one kind are logged, where others
// decide how often they are due.
package loglimit

import (
	"sync"
	"time"
)

// maxKeys bounds the keys that a Limiter remembers; those that do not fit share
// one.
const maxKeys = 1024

// Limiter lets so many lines of a key pass, and of all keys together, and counts
// the others. The zero value lets one line of a key pass in each second.
type Limiter struct {
	Every time.Duration // the span that the numbers are for; default 1 s
	Each  int           // lines of a key; default 1
	Total int           // lines of all keys; 0: not bounded

	mu     sync.Mutex
	keys   map[string]*window
	others window // of the keys that do not fit
	all    window
}

type window struct {
	until   time.Time
	passed  int
	skipped int
}

// Allow reports whether a line may be logged now, and how many of its key were
// not since the last one. A nil Limiter lets everything pass.
func (l *Limiter) Allow(key string) (skipped int, ok bool) {
	if l == nil {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	every, each := l.Every, l.Each
	if every == 0 {
		every = time.Second
	}
	if each == 0 {
		each = 1
	}
	now := time.Now()
	of := l.of(key, now)
	of.turn(now, every)
	l.all.turn(now, every)
	if of.passed >= each || (l.Total > 0 && l.all.passed >= l.Total) {
		of.skipped++
		return 0, false
	}
	of.passed++
	l.all.passed++
	skipped, of.skipped = of.skipped, 0
	return skipped, true
}

// of is the window of a key. The lock is held.
func (l *Limiter) of(key string, now time.Time) *window {
	if w := l.keys[key]; w != nil {
		return w
	}
	if len(l.keys) >= maxKeys {
		for old, w := range l.keys {
			if !now.Before(w.until) {
				delete(l.keys, old)
			}
		}
		if len(l.keys) >= maxKeys {
			return &l.others
		}
	}
	if l.keys == nil {
		l.keys = map[string]*window{}
	}
	w := &window{}
	l.keys[key] = w
	return w
}

// turn begins the next span when the one before is over.
func (w *window) turn(now time.Time, every time.Duration) {
	if !now.Before(w.until) {
		w.until, w.passed = now.Add(every), 0
	}
}
