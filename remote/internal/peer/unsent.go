package peer

import (
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// Unsent messages are counted: responses in the window of the stream, messages to
// subscribers as leases. A lease counts from its delivery until it is settled or
// expires, and in addition while it waits to be sent, which can take longer.

// count counts a message to the peer. It replaces a response without room by an
// Error. It returns false if the message is to be dropped.
func (p *peer) count(e *outgoing, limit int) bool {
	switch {
	case wire.ForSubscriber[e.kind]:
		return TakeUnsent(p.unsentLeases(), e.kind, e.size())
	case wire.IsAnswer[e.kind] && !p.window.Answered(e.kind, e.size()):
		e.body = NoRoom(e.body)
		if !e.encode(limit) {
			return false // an Error fits
		}
		p.window.Queue(e.size())
	}
	return true
}

// uncount reverses count for a message that cannot be sent.
func (p *peer) uncount(e *outgoing) {
	switch {
	case wire.ForSubscriber[e.kind]:
		p.unsentLeases().Give(e.size())
	case wire.IsAnswer[e.kind]:
		p.window.Free(e.size())
	}
}

// sent frees the bytes of a frame that was sent.
func (p *peer) sent(f *frame) {
	p.window.Free(f.answers)
	p.unsentLeases().Give(f.leases)
}

func (p *peer) unsentLeases() *limits.Holder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leases
}
