package poller

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages"
)

// handler is the actor that owns one worker at a time. Its Receive never blocks:
// user code runs in the worker's goroutine. When user code panics, the worker
// notifies its handler, which panics in turn and so fails as an actor: its
// supervisor, the poller, restarts it after a backoff.
type handler struct {
	queue  *runQueue
	topic  *Shared
	poller *actor.PID
	// worker is the goroutine in which user code runs, one lease after another.
	// It ends with its incarnation, after a panic, or, once its handler has
	// abandoned it, as soon as user code returns.
	worker *worker

	target  *actor.PID       // where leases are forwarded; nil until the first
	awaited *forwarding      // the lease whose answer is awaited; nil: none
	batch   *batchForwarding // the batch whose answers are awaited; nil: none

	// restarted says that this instance replaces one that crashed.
	restarted bool
}

func handlerProps(r *runQueue, t *Shared, poller *actor.PID) *actor.Props {
	spawned := false
	return actor.PropsFromProducer(func() actor.Actor {
		h := &handler{queue: r, topic: t, poller: poller, restarted: spawned}
		spawned = true
		return host.LogCrashes(t.Logger, h)
	}, actor.WithDispatcher(t.dispatcher))
}

// crash is the message of a worker to its handler about a panic in user code.
type crash struct {
	worker *worker
	reason any
}

// abandon asks a handler to leave its hung worker and to start another.
type abandon struct{ lease *lease }

func (h *handler) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		h.start(c)
		if h.restarted {
			h.reportRestart(c)
		}
	case *actor.Stopping, *actor.Restarting:
		h.abandonWorker()
	case abandon:
		// The worker may have finished meanwhile and run another lease.
		if w := m.lease.worker.Load(); w == h.worker && w.runs(m.lease) {
			h.abandonWorker()
			h.start(c)
		}
	case crash:
		if m.worker != h.worker { // an abandoned worker, already replaced
			h.reportRestart(c)
			return
		}
		panic(host.UserPanic{Reason: m.reason})
	case forwarding:
		h.forward(c, m)
	case *batchForwarding:
		h.forwardBatch(c, m)
	case *messages.Ack:
		h.answer(m.GetDelivery(), m)
	case *messages.Nack:
		h.answer(m.GetDelivery(), m)
	case *messages.Reject:
		h.answer(m.GetDelivery(), m)
	case *messages.Release:
		h.answer(m.GetDelivery(), m)
	case leaseEnded:
		h.leaseEnded(c, m)
	case *messages.Extend:
		h.extend(m.GetDelivery())
	case *messages.KeepRequest:
		h.keep(c, m)
	case *actor.Terminated:
		h.terminated(c, m.Who)
	case targetGone:
		h.answer(m.delivery, ErrTargetGone)
	}
}

func (h *handler) start(c actor.Context) {
	root, self := c.ActorSystem().Root, c.Self()
	w := &worker{queue: h.queue, handle: h.topic.Handle, log: h.topic.Logger, self: self, measures: h.topic.guards.Limiter != nil}
	w.fresh = h.worker == nil && !h.restarted
	if h.topic.Target != nil {
		w.sink = h.topic.Target.Sink
	}
	w.toHandler = func(message any) { w.queue.send(root, self, message) }
	h.worker = w
	if w.handleBatch = h.topic.HandleBatch; w.handleBatch != nil {
		go w.loopBatches()
		return
	}
	go w.loop()
}

// reportRestart frees the slot of a crashed worker.
func (h *handler) reportRestart(c actor.Context) {
	h.queue.restarting.Add(-1)
	h.topic.Counters.HandlerRestarts.Add(1)
	c.Send(h.poller, handlerRestarted{incarnation: h.queue.incarnation})
}

func (h *handler) abandonWorker() {
	if h.worker != nil {
		h.worker.abandoned.Store(true)
		h.queue.leave(h.worker)
	}
}

// worker is the goroutine in which user code runs, one lease after another.
// It ends with its incarnation, after a panic, or, once left by its handler,
// as soon as user code returns.
type worker struct {
	queue       *runQueue
	handle      Handle
	handleBatch HandleBatch // instead of handle; nil: the topic has no batches
	log         *slog.Logger
	sink        LeaseSink         // of forwarded leases; nil: the target is an actor
	self        *actor.PID        // its handler
	toHandler   func(message any) // sends to its handler

	measures  bool // notes how long user code takes
	counted   bool // in queue.running; guarded by queue.readyMu
	fresh     bool // in queue.starting; guarded by queue.readyMu
	abandoned atomic.Bool
	running   atomic.Pointer[lease] // of a batch: the first
}

func (w *worker) loop() {
	defer w.queue.leave(w)
	for l := w.queue.pull(w); l != nil; l = w.queue.pull(w) {
		l.worker.Store(w)
		w.running.Store(l)
		if !w.serve(l) || w.abandoned.Load() {
			return
		}
	}
}

// serve runs user code on one lease. It returns false if user code panicked or
// ended its goroutine (runtime.Goexit).
func (w *worker) serve(l *lease) (returned bool) {
	var outcome Outcome
	defer func() {
		l.ctx.end(context.Canceled) // end what user code started with it
		w.running.Store(nil)
		if returned {
			w.queue.complete(l, outcome)
			return
		}
		w.crash(l, recover())
	}()
	if l.ctx.endedBy() != nil {
		outcome.Kind = leasing.Skipped
	} else {
		began := w.begins()
		outcome = w.handle(&l.ctx, &l.Delivery)
		outcome.Took = w.since(began)
	}
	return true
}

// crash reports to poller and handler that user code did not return.
func (w *worker) crash(l *lease, reason any) {
	why := usercode.PanicText(reason)
	if reason == nil {
		reason = why
	}
	w.log.Error("handler crashed",
		"topic", l.Topic, "id", l.ID, "attempt", l.Claims, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	w.queue.restarting.Add(1)
	w.queue.complete(l, Outcome{Kind: leasing.Panicked, Reason: why})
	w.toHandler(crash{w, reason})
}

// begins returns the present, if the duration of user code is measured.
func (w *worker) begins() (began time.Time) {
	if w.measures {
		began = time.Now()
	}
	return began
}

// since returns how long user code took, if that is measured.
func (w *worker) since(began time.Time) time.Duration {
	if !w.measures {
		return 0
	}
	return max(time.Since(began), 1)
}
