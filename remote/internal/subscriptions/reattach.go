package subscriptions

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/remote/internal/peer"
)

// A link to a peer can break while the peer is healthy and does not notice: its own
// stream to the node still works. Its subscriptions are kept without leases, and are
// attached again once the link is up again.

const (
	reattachFirst = peer.RedialAfter + 100*time.Millisecond // an earlier try is refused
	reattachMax   = 30 * time.Second
)

// reattach triggers a check of whether detached subscribers are reachable again.
type reattach struct{ pause time.Duration }

// await keeps an unreachable subscriber if its peer is still connected.
func (h *hub) await(s *subscriber) {
	if there, _ := h.guard.Peers.Reach(s.to.GetAddress()); there && h.subscribers[s.key] == s {
		s.awaited = true
		h.reattachAfter(reattachFirst)
	}
}

func (h *hub) reattachAfter(pause time.Duration) {
	if h.reattaching {
		return
	}
	h.reattaching = true
	root, self, ctx := h.root, h.self, h.ctx
	time.AfterFunc(pause, func() {
		if ctx.Err() == nil {
			root.Send(self, reattach{pause})
		}
	})
}

func (h *hub) reattach(c actor.Context, m reattach) {
	h.reattaching = false
	left := false
	for _, s := range h.subscribers {
		switch there, up := h.reachable(s); {
		case !s.awaited:
		case s.to != nil: // it has subscribed again
			s.awaited = false
		case !there:
			s.awaited = false
			h.forget(s)
		case up:
			h.attach(c, s)
		default:
			left = true
			c.Watch(s.last) // so that the peer is dialled
		}
	}
	if left {
		h.reattachAfter(min(2*m.pause, reattachMax))
	}
	h.tune()
	h.deal()
}

func (h *hub) reachable(s *subscriber) (there, up bool) {
	if !s.awaited || s.to != nil {
		return false, false
	}
	return h.guard.Peers.Reach(s.last.GetAddress())
}

// attach resumes leases to a subscriber that is reachable again.
func (h *hub) attach(c actor.Context, s *subscriber) {
	s.awaited, s.to = false, s.last
	c.Watch(s.to)
	if !slices.Contains(h.order, s) {
		h.order = append(h.order, s)
	}
}
