package remote

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

// A hub that has no subscriber closes the topic, stays for topicGrace in case one
// comes back, and then has the router remove it.

type (
	// restOver ends the grace that is charged to idle.
	restOver struct{ idle *limits.Party }
	// hubIdle asks the router to remove a hub to which this many Subscribes have come.
	hubIdle struct {
		hub   *actor.PID
		topic string
		got   uint64
	}
)

// rest begins the grace when the topic is closed.
func (h *hub) rest() {
	if h.tuning.have != absent || h.tuning.busy || len(h.subscribers) > 0 || len(h.asked) > 0 {
		return
	}
	if h.lingering == nil {
		if h.idle == nil { // nothing was ever subscribed to here
			h.leave()
		}
		return
	}
	of := h.lingering
	h.lingering = nil
	h.subscriptions.Give(*of, 1)
	if h.idleTopics.Take(*of, 1) != nil {
		h.leave()
		return
	}
	h.idle = of
	root, self, ctx, over := h.root, h.self, h.ctx, restOver{of}
	time.AfterFunc(topicGrace, func() {
		if ctx.Err() == nil {
			root.Send(self, over)
		}
	})
}

// restOver ends the grace, unless somebody has subscribed meanwhile.
func (h *hub) restOver(m restOver) {
	if h.idle == m.idle {
		h.idleTopics.Give(*h.idle, 1)
		h.idle = nil
		h.leave()
	}
}

func (h *hub) leave() { h.root.Send(h.router, hubIdle{h.self, h.topic, h.tuning.got}) }
