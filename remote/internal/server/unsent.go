package server

import (
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// count counts a reply to the caller of a session. It returns false if the reply is
// to be dropped.
func (n *session) count(r *reply, kind string) bool {
	if limit := n.server.guard.Cfg.MaxMessage; wire.IsAnswer[kind] && r.size > limit-wire.FrameOverhead {
		fault := peer.TooLarge(wire.Inside(r.Reply), limit)
		*r, kind = newReply(fault), wire.FullName(fault)
	}
	size := r.size + peer.AnswerOverhead
	switch {
	case wire.ForSubscriber[kind]:
		r.lease = size
		return peer.TakeUnsent(n.leases, kind, size)
	case wire.IsAnswer[kind] && !n.window.Answered(kind, size):
		*r = newReply(peer.NoRoom(wire.Inside(r.Reply)))
		r.answer = r.size + peer.AnswerOverhead
		n.window.Queue(r.answer)
	case wire.IsAnswer[kind]:
		r.answer = size
	}
	return true
}
