package poller

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Death is a timer that became a dead letter. Its Reason and Payload are
// always given, as far as they are known.
type DeadTimer struct {
	Topic string
	exchange.Burial
}

const (
	// maxDeaths and maxDeathBytes bound what waits for the hook.
	maxHookQueue      = 1000
	maxHookQueueBytes = 16 << 20
)

// Hook calls user code for every death, one after the other, in a goroutine
// that is there only while some wait. Pollers put deaths in its queue and go
// on; when that is full, the dead letter is all that tells of them.
type DeadLetterHook struct {
	call   func(context.Context, DeadTimer) // nil: nobody wants to know
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	queue   []queuedDeadTimer
	size    int           // bytes in the queue
	idle    chan struct{} // closed when the goroutine ends; nil: there is none
	closed  bool
	skipped int // since the queue was full; 0: it is not
}

type queuedDeadTimer struct {
	DeadTimer
	counters *counters
}

func (d queuedDeadTimer) size() int { return len(d.ID) + len(d.Payload) + len(d.Reason) }

// NewHook makes a hook for call; nil: deaths are only counted.
func NewDeadLetterHook(call func(context.Context, DeadTimer), log *slog.Logger) *DeadLetterHook {
	h := &DeadLetterHook{call: call, log: log}
	//nolint:forbidigo // the runtime's life is its own: end ends it
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h
}

// Add has the hook called for a death.
func (h *DeadLetterHook) Add(d queuedDeadTimer) {
	if h.call == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	full := len(h.queue) == maxHookQueue || len(h.queue) > 0 && h.size+d.size() > maxHookQueueBytes
	if full || h.closed {
		d.counters.hookSkipped.Add(1)
		if h.skipped++; h.skipped == 1 {
			h.log.Error("hook of dead letters is not called for all: it is too slow", "topic", d.Topic, "id", d.ID, "entry", d.Entry)
		}
		return
	}
	d.Payload = bytes.Clone(d.Payload) // it shares the memory of a whole reply
	h.queue, h.size = append(h.queue, d), h.size+d.size()
	if h.idle == nil {
		h.idle = make(chan struct{})
		go h.run(h.idle)
	}
}

// next takes a death from the queue; false: there is none, and the goroutine
// has to end.
func (h *DeadLetterHook) next() (queuedDeadTimer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.queue, h.idle = nil, nil
		if h.skipped > 0 && !h.closed {
			h.log.Warn("hook of dead letters has caught up", "not_called_for", h.skipped)
			h.skipped = 0
		}
		return queuedDeadTimer{}, false
	}
	d := h.queue[0]
	h.queue[0] = queuedDeadTimer{}
	h.queue, h.size = h.queue[1:], h.size-d.size()
	return d, true
}

// run calls the hook until the queue is empty. User code that ends its
// goroutine (runtime.Goexit) ends this one, and the rest is for the next.
func (h *DeadLetterHook) run(idle chan struct{}) {
	finished := false
	defer func() {
		if finished {
			close(idle)
		} else {
			go h.run(idle)
		}
	}()
	for d, ok := h.next(); ok; d, ok = h.next() {
		h.callFor(d)
	}
	finished = true
}

func (h *DeadLetterHook) callFor(d queuedDeadTimer) {
	returned := false
	defer func() {
		if returned {
			d.counters.hookCalls.Add(1)
			return
		}
		d.counters.hookPanics.Add(1)
		reason := any("it ended its goroutine")
		if r := recover(); r != nil {
			reason = r
		}
		h.log.Error("hook of dead letters panicked", "topic", d.Topic, "id", d.ID, "entry", d.Entry,
			"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	}()
	h.call(h.ctx, d.DeadTimer)
	returned = true
}

// End waits until the hook was called for all deaths, or until an instant.
// Then its context ends with cause and the rest is dropped. It returns soon
// after that, even if the hook does not.
func (h *DeadLetterHook) End(until time.Time, cause error) {
	if h.ctx.Err() != nil {
		return // it was ended before
	}
	if h.wait(time.Until(until)) {
		h.close(cause)
		return
	}
	if dropped := h.close(cause); dropped > 0 {
		h.log.Error("hook of dead letters is not called for all: it took too long", "not_called_for", dropped)
	}
	if !h.wait(HookGrace) {
		h.log.Error("hook of dead letters ignores its context and is left behind")
	}
}

// close ends the hook's context and returns how many deaths it drops.
func (h *DeadLetterHook) close(cause error) (dropped int) {
	h.cancel(cause)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.queue {
		d.counters.hookSkipped.Add(1)
	}
	dropped = len(h.queue)
	h.queue, h.size, h.closed = nil, 0, true
	return dropped
}

// wait waits until no call is under way or waits, and reports whether that
// was in time.
func (h *DeadLetterHook) wait(d time.Duration) bool {
	h.mu.Lock()
	idle := h.idle
	h.mu.Unlock()
	if idle == nil {
		return true
	}
	select {
	case <-idle:
		return true
	case <-time.After(d):
		return false
	}
}

// HookGrace is how long the hook of dead letters has after a drain for what
// died in it, and again once its context has ended.
const HookGrace = 500 * time.Millisecond
