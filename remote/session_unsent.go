package remote

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
