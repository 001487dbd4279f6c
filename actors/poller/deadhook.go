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

// DeadTimer is a timer that was dead-lettered. Reason and Payload are set as far
// as they are known.
type DeadTimer struct {
	Topic string
	exchange.DeadLettered
}

const (
	// maxHookQueue and maxHookQueueBytes bound the queue of the hook.
	maxHookQueue      = 1000
	maxHookQueueBytes = 16 << 20
)

// DeadLetterHook calls user code for every dead-lettered timer, one after the
// other, in a goroutine that runs only while the queue is not empty. Pollers add
// to the queue and continue; what does not fit is counted, and the dead letter in
// the source remains.
type DeadLetterHook struct {
	call   func(context.Context, DeadTimer) // nil: timers are only counted
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	queue   []queuedDeadTimer
	size    int           // bytes in the queue
	idle    chan struct{} // closed when the goroutine ends; nil: it does not run
	closed  bool
	skipped int // since the queue was full; 0: it is not
}

type queuedDeadTimer struct {
	DeadTimer
	counters *counters
}

func (d queuedDeadTimer) size() int { return len(d.ID) + len(d.Payload) + len(d.Reason) }

// NewDeadLetterHook returns a hook for call; nil: dead letters are only counted.
func NewDeadLetterHook(call func(context.Context, DeadTimer), log *slog.Logger) *DeadLetterHook {
	h := &DeadLetterHook{call: call, log: log}
	//nolint:forbidigo // the context lasts as long as the runtime; End ends it
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h
}

// add queues a call of the hook.
func (h *DeadLetterHook) add(d queuedDeadTimer) {
	if h.call == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	full := len(h.queue) == maxHookQueue || len(h.queue) > 0 && h.size+d.size() > maxHookQueueBytes
	if full || h.closed {
		d.counters.hookSkipped.Add(1)
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
func (h *DeadLetterHook) next() (queuedDeadTimer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.queue, h.idle = nil, nil
		if h.skipped > 0 && !h.closed {
			h.log.Warn("dead-letter hook has caught up", "skipped", h.skipped)
			h.skipped = 0
		}
		return queuedDeadTimer{}, false
	}
	d := h.queue[0]
	h.queue[0] = queuedDeadTimer{}
	h.queue, h.size = h.queue[1:], h.size-d.size()
	return d, true
}

// run calls the hook until the queue is empty. If user code ends the goroutine
// (runtime.Goexit), another one continues.
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
		h.log.Error("dead-letter hook panicked", "topic", d.Topic, "id", d.ID, "entry", d.Entry,
			"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	}()
	h.call(h.ctx, d.DeadTimer)
	returned = true
}

// End waits until the hook was called for all queued timers, or until the given
// instant. Then its context ends with cause and the rest is dropped. It returns
// soon after that, even if the hook does not.
func (h *DeadLetterHook) End(until time.Time, cause error) {
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
	if !h.wait(HookGrace) {
		h.log.Error("dead-letter hook ignores its context and is abandoned")
	}
}

// close ends the hook's context and returns how many entries it drops.
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

// wait waits until no call runs or is queued, and reports whether that was in
// time.
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

// HookGrace is the time that the dead-letter hook has after a drain for timers
// that were dead-lettered in it, and again once its context has ended.
const HookGrace = 500 * time.Millisecond
