package poller

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/usercode"
)

// HandleBatch runs user code on deliveries and returns the outcome of each, in their
// order. Its context ends when none of them is the handler's any more.
type HandleBatch func(ctx context.Context, batch []*Delivery) []Outcome

// Context returns the context of the delivery alone. It ends, with one of the causes
// above, when the delivery is no longer the handler's.
func (d *Delivery) Context() context.Context { return &d.lease.ctx }

// batch is a set of leases that one worker handles in one call. It occupies a handler
// slot, and so as many leases as a full batch.
type batch struct {
	leases []*lease
	ctx    leaseContext
	began  time.Time    // when a worker took it
	held   atomic.Int64 // leases whose contexts have not ended
	vacant int          // leases that a full batch would have had more
	ended  sync.Once    // its slot is free
	hung   bool         // one of its leases reached the maximum age; the poller's
}

// lost notes that the context of a lease has ended. After the last one, the context of
// the call ends with the same cause.
func (b *batch) lost(l *lease, cause error) {
	if l.lostBatch.CompareAndSwap(false, true) && b.held.Add(-1) == 0 {
		b.ctx.end(cause)
	}
}

// forming is the part of a run-queue that makes batches. readyMu guards its fields.
type forming struct {
	size    int
	wait    time.Duration
	running int         // batches at once
	timer   *time.Timer // ends the wait of the first lease

	vacant atomic.Int64 // leases that full batches would have had more
}

// formBatches makes workers pull batches. It is called before the first lease.
func (r *runQueue) formBatches(size int) { r.forming = &forming{size: size} }

// pushed ends a series of pushes: workers take what it brought as one batch.
func (r *runQueue) pushed() {
	if r.forming == nil {
		return
	}
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	r.wake()
}

// vacant returns how many leases the running batches have less than full ones.
func (r *runQueue) vacant() int {
	if r.forming == nil {
		return 0
	}
	return int(r.forming.vacant.Load())
}

// formed reports whether a worker may take a batch: a full one, or one that has waited
// for long enough. If time alone is missing, until is when it has. readyMu is held.
func (r *runQueue) formed() (now bool, until time.Time) {
	f, n := r.forming, len(r.ready)-r.next
	switch {
	case n == 0 || f.running >= r.limit:
		return false, until
	case n >= f.size || f.wait == 0:
		return true, until
	}
	until = r.ready[r.next].core.Queued.Add(f.wait)
	return !time.Now().Before(until), until
}

// wakeForBatch wakes a worker if there is a batch for it, or sets the timer that will.
// readyMu is held.
func (r *runQueue) wakeForBatch() {
	now, until := r.formed()
	switch {
	case now && r.idle > 0 && !r.waking:
		r.waking = true
		r.readyCond.Signal()
	case now || until.IsZero():
	case r.forming.timer == nil:
		r.forming.timer = time.AfterFunc(time.Until(until), r.pushed)
	default:
		r.forming.timer.Reset(time.Until(until))
	}
}

// pullBatch waits for a batch; nil when the incarnation has ended.
func (r *runQueue) pullBatch() *batch {
	r.readyMu.Lock()
	defer r.readyMu.Unlock()
	for now, _ := r.formed(); !now; now, _ = r.formed() {
		if r.ended {
			return nil
		}
		r.idle++
		r.readyCond.Wait()
		r.idle--
		r.waking = false
	}
	n := min(len(r.ready)-r.next, r.forming.size)
	b := &batch{leases: make([]*lease, n), vacant: r.forming.size - n}
	copy(b.leases, r.ready[r.next:])
	clear(r.ready[r.next : r.next+n])
	if r.next += n; r.next == len(r.ready) {
		r.ready, r.next = r.ready[:0], 0
	}
	r.forming.running++
	r.forming.vacant.Add(int64(b.vacant))
	r.wake()
	return b
}

// freeSlot frees the slot of a batch, once.
func (r *runQueue) freeSlot(b *batch) {
	b.ended.Do(func() {
		r.readyMu.Lock()
		defer r.readyMu.Unlock()
		r.forming.running--
		r.forming.vacant.Add(-int64(b.vacant))
		r.wake()
	})
}

// runs reports whether a worker runs the handler of a lease, alone or in a batch.
func (w *worker) runs(l *lease) bool {
	running := w.running.Load()
	if running == nil || running == l {
		return running == l
	}
	b := l.batch.Load()
	return b != nil && running.batch.Load() == b
}

// loopBatches is loop for a topic with batches.
func (w *worker) loopBatches() {
	for b := w.queue.pullBatch(); b != nil; b = w.queue.pullBatch() {
		if !w.begin(b) {
			w.queue.freeSlot(b)
			continue
		}
		if !w.serveBatch(b) || w.abandoned.Load() {
			return
		}
	}
}

// begin makes the worker own the leases of a batch. Those whose contexts have ended
// are skipped; false: all of them.
func (w *worker) begin(b *batch) bool {
	b.ctx.parent, b.began = w.queue.ctx, time.Now()
	b.held.Store(int64(len(b.leases)))
	kept := b.leases[:0]
	for _, l := range b.leases {
		l.batch.Store(b)
		l.worker.Store(w) // after its batch, which knows when it began
		// The poller ends a lease before it looks for its batch.
		if cause := l.ctx.endedBy(); cause != nil {
			b.lost(l, cause)
			w.queue.complete(l, Outcome{Kind: leasing.Skipped})
			continue
		}
		kept = append(kept, l)
	}
	clear(b.leases[len(kept):])
	b.leases = kept
	if len(kept) == 0 {
		return false
	}
	w.running.Store(kept[0])
	return true
}

// serveBatch runs user code on a batch. It returns false if user code panicked or
// ended its goroutine (runtime.Goexit).
func (w *worker) serveBatch(b *batch) (returned bool) {
	var outcomes []Outcome
	defer func() {
		b.ctx.end(context.Canceled) // end what user code started with it
		for _, l := range b.leases {
			l.ctx.end(context.Canceled)
		}
		w.running.Store(nil)
		if returned {
			w.queue.completeBatch(b, outcomes)
			w.queue.freeSlot(b)
			return
		}
		w.crashBatch(b, recover())
	}()
	batch := make([]*Delivery, len(b.leases))
	for i, l := range b.leases {
		batch[i] = &l.Delivery
	}
	began := w.begins()
	outcomes = w.handleBatch(&b.ctx, batch)
	w.measureBatch(began, b, outcomes)
	return true
}

// crashBatch is crash for a batch: each of its timers has failed.
func (w *worker) crashBatch(b *batch, reason any) {
	why := usercode.PanicText(reason)
	if reason == nil {
		reason = why
	}
	stack := debug.Stack()
	first := b.leases[0]
	w.log.Error("batch handler crashed",
		"topic", first.Topic, "id", first.ID, "timers", len(b.leases), "panic", fmt.Sprint(reason), "stack", string(stack))
	w.queue.restarting.Add(1)
	outcomes := make([]Outcome, len(b.leases))
	for i := range outcomes {
		outcomes[i] = Outcome{Kind: leasing.Panicked, Reason: why}
	}
	w.queue.completeBatch(b, outcomes)
	w.queue.freeSlot(b)
	w.toHandler(crash{w, reason})
}

// completeBatch passes the outcomes of a batch to the poller, which sees all of them
// at once.
func (r *runQueue) completeBatch(b *batch, outcomes []Outcome) {
	r.doneMu.Lock()
	first := len(r.done) == 0
	for i, l := range b.leases {
		r.done = append(r.done, completion{l, outcomes[i]})
	}
	r.doneMu.Unlock()
	if first {
		r.toPoller(completed{incarnation: r.incarnation})
	}
}

// measureBatch notes how long a call took. A small batch says nothing about the latency,
// because calls take longer the more timers they have. One outcome stands for the call: a
// success if there is any, else one that says something about the handler.
func (w *worker) measureBatch(began time.Time, b *batch, outcomes []Outcome) {
	if !w.measures {
		return
	}
	stands := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Kind == leasing.Succeeded })
	if stands < 0 {
		stands = slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Kind.Tells() })
	}
	for i := range outcomes {
		o := &outcomes[i]
		o.Took, o.Further, o.Small = w.since(began), i != stands, len(outcomes) <= b.vacant
	}
}
