package poller

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// run is what one incarnation of a poller shares with its handlers: leases go
// one way through ready, outcomes come back through done. The poller is told
// once for all outcomes that gather until it looks, which is what makes a
// lease cost less than a message each way (docs/decisions/0001-run-queue.md).
type run struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	epoch  uint64

	// resting counts handlers that crashed and are not yet restarted.
	resting atomic.Int64

	queue sync.Mutex // guards ready, next and ended
	work  *sync.Cond
	ready []*lease // from next on: those that no worker has taken
	next  int
	ended bool

	tell  func(message any) // sends to the poller
	mu    sync.Mutex        // guards done and spare
	done  []completion
	spare []completion
}

// completion is a lease that a handler is done with.
type completion struct {
	lease   *lease
	outcome Outcome
}

func newRun(root *actor.RootContext, poller *actor.PID, epoch uint64) *run {
	r := &run{epoch: epoch}
	r.work = sync.NewCond(&r.queue)
	//nolint:forbidigo // an incarnation's life is its own: it ends when its actor does
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.tell = func(message any) { r.send(root, poller, message) }
	return r
}

// offer puts a lease in the queue, for the next worker that is free.
func (r *run) offer(l *lease) {
	r.queue.Lock()
	r.ready = append(r.ready, l)
	r.queue.Unlock()
	r.work.Signal()
}

// pull waits for a lease; nil when the incarnation has ended.
func (r *run) pull() *lease {
	r.queue.Lock()
	defer r.queue.Unlock()
	for r.next == len(r.ready) {
		if r.ended {
			return nil
		}
		r.work.Wait()
	}
	l := r.ready[r.next]
	r.ready[r.next] = nil
	if r.next++; r.next == len(r.ready) {
		r.ready, r.next = r.ready[:0], 0
	}
	return l
}

// takeBack takes the last n leases out of the queue, or as many as there are.
func (r *run) takeBack(n int) []*lease {
	r.queue.Lock()
	defer r.queue.Unlock()
	from := max(r.next, len(r.ready)-n)
	taken := slices.Clone(r.ready[from:])
	clear(r.ready[from:])
	if r.ready = r.ready[:from]; r.next == from {
		r.ready, r.next = r.ready[:0], 0
	}
	return taken
}

// oldest is since when the first lease of the queue waits; zero: none waits.
func (r *run) oldest() time.Time {
	r.queue.Lock()
	defer r.queue.Unlock()
	if r.next == len(r.ready) {
		return time.Time{}
	}
	return r.ready[r.next].queued
}

// send sends a message while the incarnation lasts. Later nobody would read it,
// and it would be a dead letter in the user's actor system.
func (r *run) send(root *actor.RootContext, to *actor.PID, message any) {
	if r.ctx.Err() == nil {
		root.Send(to, message)
	}
}

// complete hands an outcome to the poller. Any goroutine may call it.
func (r *run) complete(l *lease, o Outcome) {
	r.mu.Lock()
	first := len(r.done) == 0
	r.done = append(r.done, completion{l, o})
	r.mu.Unlock()
	if first {
		r.tell(completed{epoch: r.epoch})
	}
}

// take returns the gathered outcomes; the slice is good until the next call.
func (r *run) take() []completion {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.done
	r.done = r.spare[:0]
	r.spare = taken
	return taken
}

// stop ends the contexts of all handlers and lets idle workers go. What no
// worker has taken is left to its lease.
func (r *run) stop() {
	r.cancel(ErrStopped)
	r.queue.Lock()
	r.ended, r.ready, r.next = true, nil, 0
	r.queue.Unlock()
	r.work.Broadcast()
}
