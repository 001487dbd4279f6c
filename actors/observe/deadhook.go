package observe

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

// DeadTimer is a timer that was dead-lettered. Reason and Payload are set as far as they are
// known.
type DeadTimer struct {
	Topic string
	exchange.DeadLettered
}

const (
	// maxQueuedCalls and maxQueuedBytes bound the queue of the hook.
	maxQueuedCalls = 1000
	maxQueuedBytes = 16 << 20
)

// DeadHook calls user code for every dead-lettered timer, one after the other, in a goroutine
// that runs only while the queue is not empty. Pollers add to the queue and continue; what
// does not fit is counted, and the dead letter in the source remains.
type DeadHook struct {
	call   func(context.Context, DeadTimer) // nil: timers are only counted
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	queue   []queuedCall
	size    int           // bytes in the queue
	idle    chan struct{} // closed when the goroutine ends; nil: it does not run
	closed  bool
	skipped int // since the queue was full; 0: it is not
}

type queuedCall struct {
	DeadTimer
	counters *Counters
}

func (d queuedCall) size() int { return len(d.ID) + len(d.Payload) + len(d.Reason) }

// NewDeadHook returns a hook for call; nil: dead letters are only counted.
func NewDeadHook(call func(context.Context, DeadTimer), log *slog.Logger) *DeadHook {
	h := &DeadHook{call: call, log: log}
	//nolint:forbidigo // the context lasts as long as the runtime; End ends it
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h
}

// Add queues a call of the hook for a timer of a topic with these counters.
func (h *DeadHook) Add(timer DeadTimer, counts *Counters) {
	d := queuedCall{timer, counts}
	if h.call == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	full := len(h.queue) == maxQueuedCalls || len(h.queue) > 0 && h.size+d.size() > maxQueuedBytes
	if full || h.closed {
		d.counters.HookSkipped.Add(1)
		if h.skipped++; h.skipped == 1 {
			h.log.Error("dead-letter hook too slow; calls are skipped", "topic", d.Topic, "id", d.ID, "entry", d.Entry)
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

// next removes the first entry of the queue; false: it is empty, and the
// goroutine has to end.
func (h *DeadHook) next() (queuedCall, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.queue, h.idle = nil, nil
		if h.skipped > 0 && !h.closed {
			h.log.Warn("dead-letter hook has caught up", "skipped", h.skipped)
			h.skipped = 0
		}
		return queuedCall{}, false
	}
	d := h.queue[0]
	h.queue[0] = queuedCall{}
	h.queue, h.size = h.queue[1:], h.size-d.size()
	return d, true
}

// run calls the hook until the queue is empty. If user code ends the goroutine
// (runtime.Goexit), another one continues.
func (h *DeadHook) run(idle chan struct{}) {
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

func (h *DeadHook) callFor(d queuedCall) {
	returned := false
	defer func() {
		if returned {
			d.counters.HookCalls.Add(1)
			return
		}
		d.counters.HookPanics.Add(1)
		reason := any("it ended its goroutine")
		if r := recover(); r != nil {
			reason = r
		}
		h.log.Error("dead-letter hook panicked", "topic", d.Topic, "id", d.ID, "entry", d.Entry,
			"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	}()
	h.call(h.ctx, d.DeadTimer)
	returned = true
}

// End waits until the hook was called for all queued timers, or until the given
// instant. Then its context ends with cause and the rest is dropped. It returns
// soon after that, even if the hook does not.
func (h *DeadHook) End(until time.Time, cause error) {
	if h.ctx.Err() != nil {
		return // already ended
	}
	if h.wait(time.Until(until)) {
		h.close(cause)
		return
	}
	if dropped := h.close(cause); dropped > 0 {
		h.log.Error("dead-letter hook took too long; calls are skipped", "skipped", dropped)
	}
	if !h.wait(DeadHookGrace) {
		h.log.Error("dead-letter hook ignores its context and is abandoned")
	}
}

// close ends the hook's context and returns how many entries it drops.
func (h *DeadHook) close(cause error) (dropped int) {
	h.cancel(cause)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.queue {
		d.counters.HookSkipped.Add(1)
	}
	dropped = len(h.queue)
	h.queue, h.size, h.closed = nil, 0, true
	return dropped
}

// wait waits until no call runs or is queued, and reports whether that was in
// time.
func (h *DeadHook) wait(d time.Duration) bool {
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

// DeadHookGrace is the time that the dead-letter hook has after a drain for timers
// that were dead-lettered in it, and again once its context has ended.
const DeadHookGrace = 500 * time.Millisecond
