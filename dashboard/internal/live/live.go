// Package live watches what pages show. All browsers that show the same thing share
// one watcher, which ends with the last of them.
package live

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/usercode"
)

// Probe returns a text that differs when the page would. An error keeps the last one.
type Probe func(context.Context) (string, error)

// Hub has the watchers.
type Hub struct {
	every time.Duration
	limit int // browsers
	each  int // browsers of one viewer

	mu       sync.Mutex
	watchers map[string]*watcher
	browsers int
	viewers  map[string]int // browsers of each
	closed   chan struct{}
}

type watcher struct {
	stop context.CancelFunc
	// listeners receive one pending notice at most.
	listeners map[chan struct{}]bool
}

// New returns a hub that probes every interval, for so many browsers at most, and for so
// many of each viewer.
func New(every time.Duration, limit, each int) *Hub {
	return &Hub{every: every, limit: limit, each: each, watchers: map[string]*watcher{}, viewers: map[string]int{}, closed: make(chan struct{})}
}

// Close ends all watchers. Done is closed.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
	for _, w := range h.watchers {
		w.stop()
	}
}

// Done is closed by Close.
func (h *Hub) Done() <-chan struct{} { return h.closed }

// Watch returns a channel that receives when the probe of the key changes, and a
// function that ends this. It returns false if there are too many browsers, also of the
// viewer, or the hub is closed.
func (h *Hub) Watch(ctx context.Context, viewer, key string, probe Probe) (changed <-chan struct{}, stop func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.closed:
		return nil, nil, false
	default:
	}
	if h.browsers >= h.limit || h.viewers[viewer] >= h.each {
		return nil, nil, false
	}
	h.browsers++
	h.viewers[viewer]++
	w := h.watchers[key]
	if w == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		w = &watcher{stop: cancel, listeners: map[chan struct{}]bool{}}
		h.watchers[key] = w
		go h.run(ctx, w, probe)
	}
	c := make(chan struct{}, 1)
	w.listeners[c] = true
	var once sync.Once
	return c, func() { once.Do(func() { h.leave(viewer, key, w, c) }) }, true
}

func (h *Hub) leave(viewer, key string, w *watcher, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.browsers--
	if h.viewers[viewer]--; h.viewers[viewer] == 0 {
		delete(h.viewers, viewer)
	}
	delete(w.listeners, c)
	if len(w.listeners) == 0 {
		w.stop()
		delete(h.watchers, key)
	}
}

func (h *Hub) run(ctx context.Context, w *watcher, probe Probe) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	last, known := "", false
	for {
		var now string
		err := usercode.Called("a probe", func() (err error) {
			now, err = probe(ctx)
			return err
		})
		if err == nil {
			if known && now != last {
				h.notify(w)
			}
			last, known = now, true
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *Hub) notify(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range w.listeners {
		select {
		case c <- struct{}{}:
		default: // it has one already
		}
	}
}
