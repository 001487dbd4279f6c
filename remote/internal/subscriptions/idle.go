package subscriptions

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

// A hub without subscribers closes the topic, stays for topicGrace in case one
// comes back, and is then removed by the router.

type (
	// idleOver ends the grace period that is charged to idle.
	idleOver struct{ idle *limits.Party }
	// hubIdle requests that the router remove a hub that has received this many
	// SubscribeRequests.
	hubIdle struct {
		hub   *actor.PID
		topic string
		got   uint64
	}
)

// closeIfIdle starts the grace period once the topic is closed.
func (h *hub) closeIfIdle() {
	if h.tuning.have != absent || h.tuning.busy || len(h.subscribers)+len(h.departed) > 0 || len(h.asked) > 0 {
		return
	}
	if h.lingering == nil {
		if h.idle == nil { // there has been no subscription
			h.requestRemoval()
		}
		return
	}
	of := h.lingering
	h.lingering = nil
	h.subscriptions.Give(*of, 1)
	if h.idleTopics.Take(*of, 1) != nil {
		h.requestRemoval()
		return
	}
	h.idle = of
	root, self, ctx, over := h.root, h.self, h.ctx, idleOver{of}
	time.AfterFunc(topicGrace, func() {
		if ctx.Err() == nil {
			root.Send(self, over)
		}
	})
}

// idleOver ends the grace period, unless there is a new subscription.
func (h *hub) idleOver(m idleOver) {
	if h.idle == m.idle {
		h.idleTopics.Give(*h.idle, 1)
		h.idle = nil
		h.requestRemoval()
	}
}

func (h *hub) requestRemoval() { h.root.Send(h.router, hubIdle{h.self, h.topic, h.tuning.got}) }
