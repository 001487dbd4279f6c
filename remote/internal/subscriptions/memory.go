package subscriptions

import (
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

const (
	// leaseOverhead is what a lease takes besides its body and headers, about.
	leaseOverhead = 512
	// firstLease is taken for the size of a lease before there was one.
	firstLease = 4 << 10
)

func sizeOf(l *messages.Lease) int {
	n := len(l.GetBody()) + leaseOverhead
	for key, value := range l.GetHeaders() {
		n += len(key) + len(value) + leaseOverhead/8
	}
	return n
}

// remember counts what a subscriber holds for its principal and host, which may
// be others than before.
func (h *hub) remember(s *subscriber, host string) {
	s.memory = s.memory.MoveTo(h.guard.Leases.Holder(limits.Party{Principal: s.key.owner, Host: host}))
}

// Takes is how many leases the topic may have for the subscriber: what its
// memory has room for, going by the size of those that it holds. While there is
// much room it is its credits, so that not every lease changes the topic.
func (s *subscriber) Takes() int {
	if s.to == nil || s.used >= s.credits {
		return s.used
	}
	left, spare := s.memory.Left()
	if left >= limits.Leases.Holder/2 {
		return s.credits
	}
	if s.used > 0 {
		s.typical = max(s.memory.InUse()/s.used, leaseOverhead)
	} else if s.typical == 0 {
		s.typical = firstLease
	}
	more := left / s.typical
	if more == 0 && s.used == 0 && spare >= s.typical {
		more = 1
	}
	return min(s.credits, s.used+more)
}

// short reports whether subscribers would take more leases if there were memory
// for them.
func (h *hub) short() bool {
	for _, s := range h.order {
		if s.Takes() < s.credits {
			return true
		}
	}
	return false
}

// wait keeps a lease until there is a subscriber for it. What there is no room
// for is given back.
func (h *hub) wait(l *held) {
	if h.waitingMemory.Take(l.size) != nil {
		l.lease.Answer(l.lease.Release())
		h.free(l)
		return
	}
	l.counted = true
	h.waiting = append(h.waiting, l)
}

// releaseMemory gives back the memory of a lease that waits no longer.
func (h *hub) releaseMemory(l *held) {
	if l.counted {
		l.counted = false
		h.waitingMemory.Give(l.size)
	}
}
