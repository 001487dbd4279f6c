// Package loglimit limits the number of log lines about events whose frequency a
// peer or a user decides.
package loglimit

import (
	"sync"
	"time"
)

// maxKeys bounds the keys that a Limiter remembers. Further keys share one limit.
const maxKeys = 1024

// Limiter allows a number of lines for each key and for all keys together in a
// time window, and counts the others. The zero value allows one line per key and
// second.
type Limiter struct {
	Every time.Duration // the length of the window; default 1 s
	Each  int           // lines per key; default 1
	Total int           // lines of all keys; 0: no limit

	mu     sync.Mutex
	keys   map[string]*window
	others window // shared by the keys beyond maxKeys
	all    window
}

type window struct {
	until   time.Time
	passed  int
	skipped int
}

// Allow reports whether a line may be logged now, and how many lines of its key
// were skipped since the last one that was. A nil Limiter allows every line.
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
	w := l.window(key, now)
	w.advance(now, every)
	l.all.advance(now, every)
	if w.passed >= each || (l.Total > 0 && l.all.passed >= l.Total) {
		w.skipped++
		return 0, false
	}
	w.passed++
	l.all.passed++
	skipped, w.skipped = w.skipped, 0
	return skipped, true
}

// window returns the window of a key. The caller holds the lock.
func (l *Limiter) window(key string, now time.Time) *window {
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

// advance resets the count when the window has ended.
func (w *window) advance(now time.Time, every time.Duration) {
	if !now.Before(w.until) {
		w.until, w.passed = now.Add(every), 0
	}
}
