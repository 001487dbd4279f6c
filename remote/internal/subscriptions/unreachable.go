package subscriptions

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/remote/internal/wire"
)

// terminated handles the end of a subscriber's actor, or of the link to it. A session that ended
// before it was watched does not say why: its link may have broken.
func (h *hub) terminated(m *actor.Terminated) {
	unwatched := m.GetWhy() == actor.TerminatedReason_NotFound && m.GetWho().GetAddress() == h.self.GetAddress()
	if unwatched || m.GetWhy() == actor.TerminatedReason_AddressTerminated {
		h.outOfReach(m.GetWho())
		return
	}
	for _, s := range h.At(m.GetWho()) {
		over := graceOver{s.key, s.generation}
		h.detach(s)
		root, self := h.root, h.self
		time.AfterFunc(wire.Grace, func() {
			if h.ctx.Err() == nil {
				root.Send(self, over)
			}
		})
	}
}

func (h *hub) graceOver(m graceOver) {
	if s := h.subscribers[m.key]; s != nil && s.generation == m.generation && s.to == nil {
		h.endSubscription(s)
	}
	for former := range h.departed {
		if former.key == m.key && former.generation == m.generation && former.to == nil {
			h.endReplaced(former)
		}
	}
}

// outOfReach detaches the subscribers behind a broken link. Their leases run until
// they expire, because the subscribers may be working on them.
func (h *hub) outOfReach(pid *actor.PID) {
	for _, s := range h.At(pid) {
		h.await(s)
		h.detach(s)
	}
	for s := range h.all() {
		if s.to == nil && same(s.last, pid) {
			s.generation++ // its earlier end was caused by the link: cancel graceOver
		}
	}
}

func same(a, b *actor.PID) bool {
	return a != nil && b != nil && a.GetId() == b.GetId() && a.GetAddress() == b.GetAddress()
}

func (h *hub) At(pid *actor.PID) (all []*subscriber) {
	for s := range h.all() {
		if same(s.to, pid) {
			all = append(all, s)
		}
	}
	return all
}

// detach stops leases to a subscriber until it subscribes again.
func (h *hub) detach(s *subscriber) {
	s.last, s.to, s.out = s.to, nil, nil
	h.leaveOrder(s)
	h.forget(s)
	h.tune()
}
