package subscriptions

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

// absent is the capacity of a topic that the System does not handle.
const absent = -1

// tuning is the state of a topic in the System: how many leases it may have. One
// goroutine at a time changes it. It survives a crash of the hub.
type tuning struct {
	have, want int
	busy       bool
	queue      *messages.Queue // nil: it is a topic; changes only while have is absent
	got        uint64          // SubscribeRequests received
}

// tune sets the number of leases of the topic to what all subscribers can hold.
// Without subscribers it removes the topic from the System.
func (h *hub) tune() {
	want := min(h.capacity(), maxCredits)
	if want == 0 && (h.tuning.have == absent || len(h.held) == 0 && len(h.waiting) == 0 && !h.lingers()) {
		want = absent // a topic that is closed is not opened without leases to ask for
	}
	h.tuning.want = want
	if h.short() {
		h.later() // other holders may free memory
	}
	if h.tuning.busy || want == h.tuning.have {
		return
	}
	h.tuning.busy = true
	have, queue, ctx, root, self := h.tuning.have, h.tuning.queue, h.ctx, h.root, h.self
	if !h.guard.Enter() {
		return
	}
	go func() {
		defer h.guard.Running.Done()
		now, err := h.apply(ctx, queue, have, want)
		if ctx.Err() == nil {
			root.Send(self, tuned{now, err})
		}
	}()
}

// apply changes how the System handles the topic, and returns the resulting
// capacity.
func (h *hub) apply(ctx context.Context, queue *messages.Queue, have, want int) (now int, err error) {
	switch {
	case have == absent:
		err = h.system.Add(ctx, h.handler(queue, want))
	case want == absent:
		err = h.system.Remove(h.topic)
	case want == 0:
		err = h.system.PauseLocal(h.topic)
	default:
		if err = h.system.RetuneLocal(h.topic, wakebell.MaxConcurrent(want)); err == nil && have == 0 {
			err = h.system.ResumeLocal(h.topic)
		}
	}
	switch {
	case errors.Is(err, wakebell.ErrNoTopic), want == absent && errors.Is(err, wakebell.ErrUnfinished):
		return absent, nil // the topic is removed, even if work is left
	case err != nil:
		return have, err
	}
	return want, nil
}

// handler forwards up to this many leases of the topic or queue to the hub.
func (h *hub) handler(keys *messages.Queue, leases int) wakebell.Handler {
	to := wakebell.ToSink(hosted.Sink{LeaseSink: h.arrivals})
	if keys == nil {
		handling := append(slices.Clone(h.guard.Cfg.HandlerOptions), wakebell.MaxConcurrent(leases))
		return wakebell.Forward(wakebell.NewTopic[[]byte](h.topic), to, handling...)
	}
	var options []queue.Option
	if keys.GetSeparator() != "" {
		options = append(options, queue.KeySeparator(keys.GetSeparator()))
	}
	if keys.GetDeadLetters() != "" {
		options = append(options, queue.DeadLetterKey(keys.GetDeadLetters()))
	}
	handling := append(slices.Clone(h.guard.Cfg.QueueHandlerOptions), wakebell.MaxConcurrent(leases))
	return wakebell.ForwardQueue(queue.New[[]byte](h.topic, options...), to, handling...)
}

// isFor reports whether a subscription matches the topic or queue of the hub. A hub
// without subscribers adopts it.
func (h *hub) isFor(queue *messages.Queue) bool {
	t := h.tuning
	if t.have == absent && !t.busy && len(h.subscribers) == 0 {
		t.queue = queue
	}
	return (t.queue == nil) == (queue == nil) && proto.Equal(t.queue, queue)
}

func (h *hub) tuned(m tuned) {
	h.tuning.busy, h.tuning.have = false, m.have
	if m.err != nil {
		h.refuseAsked(m.err)
		h.later()
		h.closeIfIdle()
		return
	}
	h.answerAsked()
	h.tune()
	h.closeIfIdle()
}

// refuseAsked answers the pending requests for a topic that cannot be handled. Subscriptions that were
// confirmed before stay, unless another attempt cannot help.
func (h *hub) refuseAsked(err error) {
	if h.tuning.have != absent {
		if errors.Is(err, wakebell.ErrNotRunning) {
			return // a stopped System handles no topic
		}
		h.guard.Log.Warn("change of a subscribed topic failed", "topic", h.topic, "err", err)
		return
	}
	code := messages.Code_CODE_UNAVAILABLE
	switch {
	case errors.Is(err, wakebell.ErrNotRunning): // the node listens before it starts
		code = messages.Code_CODE_DRAINING
	case errors.Is(err, wakebell.ErrTopicTaken):
		code = messages.Code_CODE_CONFLICT
	case errors.Is(err, wakebell.ErrInvalid):
		code = messages.Code_CODE_INVALID
	}
	refused := map[*subscriber]bool{}
	for _, a := range h.asked {
		fault := messages.Failure(code, err.Error())
		fault.Request = a.message.GetRequest()
		h.root.Send(a.sender, fault)
		refused[a.of] = true
	}
	h.asked = nil
	for _, s := range h.subscribers {
		if s.to != nil && !refused[s] { // its request was answered while the topic was still handled
			if code == messages.Code_CODE_UNAVAILABLE || code == messages.Code_CODE_DRAINING {
				continue // the next sweep tries again
			}
			h.root.Send(s.to, &messages.LeasesEnded{
				Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Subscription: messages.Failure(code, err.Error()),
			})
		}
		s.to = nil
		h.leaveOrder(s)
		h.forget(s)
	}
}
