package gates

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// HoldStore stores for how long turns were held. No turn waits for it.
type HoldStore interface {
	// AddHolds adds turns that ended to what is known of their gates.
	AddHolds(ctx context.Context, held map[string]gate.Holds) error
}

const (
	// holdsEvery is for how long ended turns are counted before they are stored.
	holdsEvery = 5 * time.Second
	// maxHolds bounds the gates that are counted meanwhile; turns at others are not.
	maxHolds = 1000
	// holdsTimeout bounds the storing.
	holdsTimeout = time.Second
)

// holds counts for how long turns were held, and stores it from time to time.
type holds struct {
	store  HoldStore // nil: nothing is counted
	failed func(error)
	io     *sync.WaitGroup

	mu      sync.Mutex
	counts  map[string]gate.Holds
	timer   *time.Timer
	stopped bool
}

// add counts a turn that was held for d.
func (h *holds) add(name string, d time.Duration) {
	if h == nil || h.store == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = map[string]gate.Holds{}
	}
	if _, known := h.counts[name]; !known && len(h.counts) == maxHolds {
		return
	}
	counts := h.counts[name]
	counts.Add(d)
	h.counts[name] = counts
	if h.timer == nil && !h.stopped {
		h.timer = time.AfterFunc(holdsEvery, func() { h.flush(false) })
	}
}

// flush stores what was counted; last: nothing is stored afterwards.
func (h *holds) flush(last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || h.store == nil {
		return
	}
	if h.stopped = last; h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	counts := h.counts
	h.counts = nil
	if len(counts) == 0 {
		return
	}
	h.io.Go(func() {
		//nolint:forbidigo // it outlasts the turns, and is bounded
		ctx, cancel := context.WithTimeout(context.Background(), holdsTimeout)
		defer cancel()
		if err := h.store.AddHolds(ctx, counts); err != nil {
			h.failed(err)
		}
	})
}
