package actors

import (
	"context"
	"sync"
	"sync/atomic"

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

	// ready is closed by the poller, its only sender, when the incarnation
	// ends. Its capacity is the number of slots, so a send never blocks.
	ready chan *lease

	// resting counts handlers that crashed and are not yet restarted.
	resting atomic.Int64

	notify func() // tells the poller that done is no longer empty
	mu     sync.Mutex
	done   []completion
	spare  []completion
}

// completion is a lease that a handler is done with.
type completion struct {
	lease   *lease
	outcome Outcome
}

func newRun(root *actor.RootContext, poller *actor.PID, epoch uint64, slots int) *run {
	r := &run{epoch: epoch, ready: make(chan *lease, slots)}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.notify = func() { root.Send(poller, completed{epoch: epoch}) }
	return r
}

// complete hands an outcome to the poller. Any goroutine may call it.
func (r *run) complete(l *lease, o Outcome) {
	r.mu.Lock()
	first := len(r.done) == 0
	r.done = append(r.done, completion{l, o})
	r.mu.Unlock()
	if first {
		r.notify()
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

// stop ends the contexts of all handlers and lets idle workers go.
func (r *run) stop() {
	r.cancel(ErrStopped)
	close(r.ready)
}
