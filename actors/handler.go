package actors

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// handler is the actor that owns one worker at a time. Its Receive never
// blocks: user code runs in the worker's goroutine. When user code panics the
// worker tells its handler, which panics in turn and so fails as an actor
// does: its supervisor, the poller, restarts it after a backoff.
type handler struct {
	run    *run
	handle Handle
	log    *slog.Logger
	poller *actor.PID
	worker *worker

	// restarted says that this instance replaces one that crashed.
	restarted bool
}

func handlerProps(r *run, t *topicConfig, poller *actor.PID) *actor.Props {
	spawned := false
	return actor.PropsFromProducer(func() actor.Actor {
		h := &handler{run: r, handle: t.Handle, log: t.Logger, poller: poller, restarted: spawned}
		spawned = true
		return h
	}, actor.WithReceiverMiddleware(logCrashes(t.Logger)))
}

// crash is what a worker tells its handler about a panic in user code.
type crash struct {
	worker *worker
	reason any
}

// abandon tells a handler to leave its hung worker and start another.
type abandon struct{ lease *lease }

func (h *handler) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		h.start(c)
		if h.restarted {
			h.back(c)
		}
	case *actor.Stopping, *actor.Restarting:
		h.leave()
	case abandon:
		// The worker may have come back meanwhile and run another lease.
		if w := m.lease.worker.Load(); w == h.worker && w.running.Load() == m.lease {
			h.leave()
			h.start(c)
		}
	case crash:
		if m.worker != h.worker { // one that was left already, and replaced
			h.back(c)
			return
		}
		panic(userPanic{m.reason})
	}
}

func (h *handler) start(c actor.Context) {
	root, self := c.ActorSystem().Root, c.Self()
	w := &worker{run: h.run, handle: h.handle, log: h.log, self: self}
	w.crashed = func(reason any) { root.Send(self, crash{w, reason}) }
	h.worker = w
	go w.loop()
}

// back gives the slot of a crashed worker free again.
func (h *handler) back(c actor.Context) {
	h.run.resting.Add(-1)
	c.Send(h.poller, handlerBack{epoch: h.run.epoch})
}

func (h *handler) leave() {
	if h.worker != nil {
		h.worker.left.Store(true)
	}
}

// userPanic marks a panic of user code, whose stack has been logged already.
type userPanic struct{ reason any }

func (p userPanic) String() string { return fmt.Sprint(p.reason) }

// worker is the goroutine in which user code runs, one lease after another.
// It ends with its incarnation, after a panic, or, once left by its handler,
// as soon as user code returns.
type worker struct {
	run     *run
	handle  Handle
	log     *slog.Logger
	self    *actor.PID
	crashed func(reason any)

	left    atomic.Bool
	running atomic.Pointer[lease]
}

func (w *worker) loop() {
	for l := w.run.pull(); l != nil; l = w.run.pull() {
		l.worker.Store(w)
		w.running.Store(l)
		if !w.serve(l) || w.left.Load() {
			return
		}
	}
}

// serve runs user code on one lease and reports false if it did not return:
// it panicked, or ended its goroutine (runtime.Goexit).
func (w *worker) serve(l *lease) (returned bool) {
	var outcome Outcome
	defer func() {
		l.ctx.end(context.Canceled) // what user code began with it ends too
		w.running.Store(nil)
		if returned {
			w.run.complete(l, outcome)
			return
		}
		w.crash(l, recover())
	}()
	if l.ctx.endedBy() != nil {
		outcome.kind = skipped
	} else {
		outcome = w.handle(&l.ctx, &l.Delivery)
	}
	return true
}

// crash tells poller and handler that user code did not return.
func (w *worker) crash(l *lease, reason any) {
	if reason == nil {
		reason = "handler ended its goroutine"
	}
	w.log.Error("handler crashed: its actor restarts, the timer comes back when its lease ends",
		"topic", l.Topic, "id", l.ID, "claims", l.Claims, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	w.run.resting.Add(1)
	w.run.complete(l, Outcome{kind: crashed, err: fmt.Errorf("handler crashed: %v", reason)})
	w.crashed(reason)
}
