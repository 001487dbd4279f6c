package subscriptions

import (
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

const (
	// leaseOverhead estimates the memory of a lease, in bytes, besides its body and
	// headers.
	leaseOverhead = 512
	// firstLease is the assumed size of a lease, in bytes, until the first one arrives.
	firstLease = 4 << 10
)

func sizeOf(l *messages.Lease) int {
	n := len(l.GetBody()) + leaseOverhead
	for key, value := range l.GetHeaders() {
		n += len(key) + len(value) + leaseOverhead/8
	}
	return n
}

// remember charges the leases of a subscriber to its principal and to its current
// host.
func (h *hub) remember(s *subscriber, host string) {
	s.memory = s.memory.MoveTo(h.guard.Leases.Holder(limits.Party{Principal: s.key.owner, Host: host}))
}

// Takes returns how many leases the topic may claim for the subscriber: as many as
// fit its memory, judged by the size of the leases that it holds. While at least
// half of the memory is free it returns the credits, so that not every lease changes
// the topic's settings.
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

// short reports whether subscribers would take more leases if there were memory for
// them.
func (h *hub) short() bool {
	for _, s := range h.order {
		if s.Takes() < s.credits {
			return true
		}
	}
	return false
}

// wait stores a lease until a subscriber can take it. Without room it releases the
// lease.
func (h *hub) wait(l *held) {
	if h.waitingMemory.Take(l.size) != nil {
		l.lease.Answer(l.lease.Release())
		h.free(l)
		return
	}
	l.counted = true
	h.waiting = append(h.waiting, l)
}

// releaseMemory returns the memory of a lease that no longer waits.
func (h *hub) releaseMemory(l *held) {
	if l.counted {
		l.counted = false
		h.waitingMemory.Give(l.size)
	}
}
