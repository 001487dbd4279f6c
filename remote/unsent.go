package remote

import "github.com/wakebell/wakebell/remote/internal/limits"

// What waits to be sent is counted: answers as debts of the stream, what is for
// subscribers as leases. A lease counts from when it is given until it is
// settled or over, and once more while it waits to be sent: when it is over it
// may wait still.

// takeUnsent counts a message for subscribers; false: it is to be dropped.
func takeUnsent(h *limits.Holder, kind string, size int) bool {
	if kind == extensions {
		return h.Take(size) == nil
	}
	h.Force(size)
	return true
}

// count counts a message for the peer. An answer that there is no room for
// becomes an Error. False: the message is dropped.
func (p *peer) count(e *outgoing, limit int) bool {
	switch {
	case forSubscriber[e.kind]:
		return takeUnsent(p.unsentLeases(), e.kind, e.size())
	case isAnswer[e.kind] && !p.debts.answered(e.kind, e.size()):
		e.body = noRoom(e.body)
		if !e.encode(limit) {
			return false // an Error fits
		}
		p.debts.queue(e.size())
	}
	return true
}

// uncount takes a message back that cannot be sent.
func (p *peer) uncount(e *outgoing) {
	switch {
	case forSubscriber[e.kind]:
		p.unsentLeases().Give(e.size())
	case isAnswer[e.kind]:
		p.debts.paid(e.size())
	}
}

// sent notes that a frame was sent.
func (p *peer) sent(f *frame) {
	p.debts.paid(f.answers)
	p.unsentLeases().Give(f.leases)
}

func (p *peer) unsentLeases() *limits.Holder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leases
}

// count counts a reply for the caller of a session. False: it is dropped.
func (n *session) count(r *reply, kind string) bool {
	size := r.size + answerOverhead
	switch {
	case forSubscriber[kind]:
		r.lease = size
		return takeUnsent(n.leases, kind, size)
	case isAnswer[kind] && !n.debts.answered(kind, size):
		*r = newReply(noRoom(inside(r.Reply)))
		r.answer = r.size + answerOverhead
		n.debts.queue(r.answer)
	case isAnswer[kind]:
		r.answer = size
	}
	return true
}
