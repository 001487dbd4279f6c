package poller

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/observe"
)

// runQueue is shared by one incarnation of a poller and its handlers: leases go
// through ready, outcomes come back through done. The poller receives one message
// for all outcomes that arrive until it reads them, so that a lease costs less
// than a message each way (docs/decisions/0001-run-queue.md).
type runQueue struct {
	ctx         context.Context
	cancel      context.CancelCauseFunc
	incarnation uint64
	forwards    bool // leases are forwarded to a target
	attachment  any  // Topic.Attachment
	feed        *observe.Feed

	// restarting counts handlers that crashed and are not restarted yet.
	restarting atomic.Int64

	readyMu   sync.Mutex // guards the fields down to ended
	readyCond *sync.Cond
	ready     []*lease // from next on: not yet taken by a worker
	next      int
	idle      int  // workers that wait
	starting  int  // workers that were spawned and have not come yet
	mayAsk    bool // the poller can spawn another worker, and was not asked yet
	waking    bool // one of them was woken and has not run yet
	ended     bool
	limit     int      // workers that may have a lease at once
	running   int      // workers that have one; not for batches
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

// pull waits for a lease for w, which has finished the one before; nil when the
// incarnation has ended. After the limit was lowered, as many workers wait as there are
// too many, also for leases that were prefetched before.
func (r *runQueue) pull(w *worker) *lease {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	r.finished(w)
	if w.fresh {
		w.fresh, r.starting = false, r.starting-1
	}
	for r.next == len(r.ready) || r.running >= r.limit {
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
	r.running, w.counted = r.running+1, true
	r.wake()
	if r.mayAsk && r.lacks() {
		r.mayAsk = false
		r.toPoller(workerNeeded{incarnation: r.incarnation})
	}
	return l
}

// lacksWorker reports whether there is a lease that only a new worker would take soon.
// While it does not, the next worker that leaves such a lease asks the poller for another.
// So workers come one after the other: by the time the next one runs, quick handlers have
// left it nothing to do, and a topic with a timer now and then has one.
func (r *runQueue) lacksWorker() bool {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	r.mayAsk = true
	return r.lacks()
}

// lacks is lacksWorker; readyMu is held.
func (r *runQueue) lacks() bool {
	return r.next < len(r.ready) && r.idle+r.starting == 0 && r.running < r.limit
}

// workerStarts notes that a worker was spawned.
func (r *runQueue) workerStarts() {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	r.starting++
}

// leave notes that w takes no further lease, or is no longer counted.
func (r *runQueue) leave(w *worker) {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	r.finished(w)
	r.wake()
}

// finished notes that w has no lease. readyMu is held.
func (r *runQueue) finished(w *worker) {
	if w.counted {
		r.running, w.counted = r.running-1, false
	}
}

// tune sets how many workers may have a lease or a batch at once, and how long leases
// wait for others of their batch.
func (r *runQueue) tune(limit int, wait time.Duration) {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	r.limit = limit
	if r.forming != nil {
		r.forming.wait = wait
	}
	r.wake()
}

// wake wakes a worker if there is a lease for it, one after the other: by the time
// the next one runs, quick handlers have left it nothing to do. readyMu is held.
func (r *runQueue) wake() {
	if r.forming != nil {
		r.wakeForBatch()
		return
	}
	if r.next < len(r.ready) && r.idle > 0 && !r.waking && r.running < r.limit {
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
	return r.ready[r.next].core.Queued
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
