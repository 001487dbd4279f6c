package actors_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/redisops/timers"
)

// script is what a handler does with one delivery, step by step:
//
//	work D [M]      works for D; if its context ends earlier, it fails with the cause, M later
//	ignore D        works for D and ignores its context
//	finish D        works for D or until its context ends, and goes on to the next step
//	schedule ID D
//	settle          acks at once, and goes on to the next step
//	ack | fail | retry D | reject | unreadable | gone | panic | goexit
//
// Steps are joined by "then"; a script that ends without a verdict acks.
type script [][]string

func (w *world) handle(words []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var scripts []script
	for text := range strings.SplitSeq(strings.Join(words[1:], " "), "|") {
		var s script
		for step := range strings.SplitSeq(text, "then") {
			s = append(s, strings.Fields(step))
		}
		scripts = append(scripts, s)
	}
	w.scripts[words[0]] = scripts
}

// next returns the script of the next delivery of id.
func (w *world) next(id string) script {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.deliveries[id]
	w.deliveries[id]++
	scripts := w.scripts[id]
	if len(scripts) == 0 {
		return nil
	}
	return scripts[min(n, len(scripts)-1)]
}

// deliver is the handler of all topics.
func (w *world) deliver(ctx context.Context, n *node, d *poller.Delivery) poller.Outcome {
	w.note("%s%s delivered, attempt %d", w.of(n), d.ID, d.Claims)
	for _, step := range w.next(d.ID) {
		if outcome, done := w.step(ctx, n, d, step); done {
			return outcome
		}
	}
	w.note("%s%s handler acks", w.of(n), d.ID)
	return poller.Succeeded()
}

func (w *world) step(ctx context.Context, n *node, d *poller.Delivery, step []string) (outcome poller.Outcome, done bool) {
	ends := func(what string, o poller.Outcome) (poller.Outcome, bool) {
		w.note("%s%s handler %s", w.of(n), d.ID, what)
		return o, true
	}
	switch verb := step[0]; verb {
	case "work", "ignore", "finish":
		cause := w.work(ctx, n, d, step)
		if cause != nil && verb == "work" {
			return ends("fails", poller.Failed(cause))
		}
		return outcome, false
	case "settle":
		err := d.Settle(ctx, poller.Succeeded())
		w.note("%s%s handler has settled: %v", w.of(n), d.ID, err)
		return outcome, false
	case "schedule":
		w.note("%s%s handler schedules %s in %s", w.of(n), d.ID, step[1], step[2])
		// A timer that a handler schedules may outlive the handler's lease, so ctx
		// does not apply.
		_, err := w.store.Schedule(context.WithoutCancel(ctx), d.Topic,
			timers.Entry{ID: step[1], Payload: []byte("body"), In: w.duration(step[2])})
		require.NoError(w.t, err)
		return outcome, false
	case "ack":
		return ends("acks", poller.Succeeded())
	case "fail":
		return ends("fails", poller.Failed(errors.New("failed")))
	case "retry":
		return ends("asks for a retry in "+step[1], poller.FailedFor(w.duration(step[1]), errors.New("failed")))
	case "reject":
		return ends("rejects", poller.Rejected(errors.New("rejected")))
	case "unreadable":
		return ends("cannot read it", poller.Undeliverable(errors.New("unreadable")))
	case "gone":
		return ends("gives no verdict", poller.Crashed(errors.New("its actor failed")))
	case "panic":
		w.note("%s%s handler panics", w.of(n), d.ID)
		panic("as the scenario wants it")
	case "goexit":
		w.note("%s%s handler ends its goroutine", w.of(n), d.ID)
		runtime.Goexit()
	}
	panic("unknown step " + step[0])
}

// work waits as the step says. If the context ends earlier, work returns its cause.
func (w *world) work(ctx context.Context, n *node, d *poller.Delivery, step []string) (cause error) {
	over := time.After(w.duration(step[1]))
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	cause = context.Cause(ctx)
	w.note("%s%s context ends: %v", w.of(n), d.ID, cause)
	switch {
	case step[0] == "ignore":
		<-over
	case len(step) > 2:
		<-time.After(w.duration(step[2]))
	}
	return cause
}
