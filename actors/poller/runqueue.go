package poller

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// runQueue is shared by one incarnation of a poller and its handlers: leases go
// through ready, outcomes come back through done. The poller receives one message
// for all outcomes that arrive until it reads them, so that a lease costs less
// than a message each way (docs/decisions/0001-run-queue.md).
type runQueue struct {
	ctx         context.Context
	cancel      context.CancelCauseFunc
	incarnation uint64

	// restarting counts handlers that crashed and are not restarted yet.
	restarting atomic.Int64

	readyMu   sync.Mutex // guards the fields down to ended
	readyCond *sync.Cond
	ready     []*lease // from next on: not yet taken by a worker
	next      int
	idle      int  // workers that wait
	waking    bool // one of them was woken and has not run yet
	ended     bool
	forming   *forming // makes batches; nil: workers take one lease after another

	toPoller func(message any) // sends to the poller
	doneMu   sync.Mutex        // guards done and spare
	done     []completion
	spare    []completion
}

// completion is a lease with the outcome of its handler.
type completion struct {
	lease   *lease
	outcome Outcome
}

func newRunQueue(root *actor.RootContext, poller *actor.PID, incarnation uint64) *runQueue {
	r := &runQueue{incarnation: incarnation}
	r.readyCond = sync.NewCond(&r.readyMu)
	//nolint:forbidigo // the context lasts as long as the incarnation, which
	// stop ends
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.toPoller = func(message any) { r.send(root, poller, message) }
	return r
}

// push adds a lease to the queue, for the next free worker. Batches begin with pushed.
func (r *runQueue) push(l *lease) {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	r.ready = append(r.ready, l)
	if r.forming == nil {
		r.wake()
	}
}

// pull waits for a lease; nil when the incarnation has ended.
func (r *runQueue) pull() *lease {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	for r.next == len(r.ready) {
		if r.ended {
			return nil
		}
		r.idle++
		r.readyCond.Wait()
		r.idle--
		r.waking = false
	}
	l := r.ready[r.next]
	r.ready[r.next] = nil
	if r.next++; r.next == len(r.ready) {
		r.ready, r.next = r.ready[:0], 0
	}
	r.wake()
	return l
}

// wake wakes a worker if there is a lease for it, one after the other: by the time
// the next one runs, quick handlers have left it nothing to do. readyMu is held.
func (r *runQueue) wake() {
	if r.forming != nil {
		r.wakeForBatch()
		return
	}
	if r.next < len(r.ready) && r.idle > 0 && !r.waking {
		r.waking = true
		r.readyCond.Signal()
	}
}

// takeLast removes the last n leases from the queue, or as many as there are.
func (r *runQueue) takeLast(n int) []*lease {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	from := max(r.next, len(r.ready)-n)
	taken := slices.Clone(r.ready[from:])
	clear(r.ready[from:])
	if r.ready = r.ready[:from]; r.next == from {
		r.ready, r.next = r.ready[:0], 0
	}
	return taken
}

// oldestQueued is when the first lease of the queue was added; zero: it is empty.
func (r *runQueue) oldestQueued() time.Time {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	if r.next == len(r.ready) {
		return time.Time{}
	}
	return r.ready[r.next].queued
}

// send sends a message while the incarnation lasts. Afterwards the message would
// become a dead letter in the user's actor system.
func (r *runQueue) send(root *actor.RootContext, to *actor.PID, message any) {
	if r.ctx.Err() == nil {
		root.Send(to, message)
	}
}

// complete passes an outcome to the poller. Any goroutine may call it.
func (r *runQueue) complete(l *lease, o Outcome) {
	r.doneMu.Lock()
	first := len(r.done) == 0
	r.done = append(r.done, completion{l, o})
	r.doneMu.Unlock()
	if first {
		r.toPoller(completed{incarnation: r.incarnation})
	}
}

// takeDone returns the collected outcomes; the slice is valid until the next
// call.
func (r *runQueue) takeDone() []completion {
	r.doneMu.Lock()
	defer r.doneMu.Unlock()
	taken := r.done
	r.done = r.spare[:0]
	r.spare = taken
	return taken
}

// stop ends the contexts of all handlers and lets idle workers return. Leases
// that no worker has taken expire.
func (r *runQueue) stop() {
	r.cancel(ErrStopped)
	r.readyMu.Lock()
	r.ended, r.ready, r.next = true, nil, 0
	if r.forming != nil && r.forming.timer != nil {
		r.forming.timer.Stop()
	}
	r.readyMu.Unlock()
	r.readyCond.Broadcast()
}
