package subscriptions

import (
	"time"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

const (
	// topicGrace is how long a topic stays open after its last subscriber has left.
	topicGrace = 5 * time.Second
	// maxCredits bounds the leases of a subscriber, and of a topic at a node. One
	// principal holds at most half of what the others on the topic do not.
	maxCredits = 10_000
	// maxSubscribers bounds the subscribers of a topic at a node. One principal has at
	// most half of what the others on the topic leave.
	maxSubscribers = 1000
	maxName        = 512 // bytes of a topic
	maxSubscriber  = 256 // bytes of a subscriber's name
	maxInstance    = 64  // bytes of what a process calls itself
)

// half returns how much of a resource one party may hold while others hold the given
// amount: half of what they leave, at least 1. So there is always some left for the
// next party.
func half(most, others int) int { return max(1, (most-others)/2) }

// holding is the usage of a topic by the subscribers of one principal.
type holding struct {
	subscribers int
	takes       int // leases that the topic may claim for them; set by capacity
	used        int // leases that they hold
}

// enter charges a party for a new subscription. The charge of the last one that has left passes
// on to it: while leases of that one expire, its principal could not come back at its bound.
func (h *hub) enter(of limits.Party) error {
	if h.lingering != nil && *h.lingering == of {
		h.lingering = nil
		return nil
	}
	return h.subscriptions.Take(of, 1)
}

// join creates a subscriber, charged to a party.
func (h *hub) join(key subscriberKey, of limits.Party) *subscriber {
	if h.lingering != nil {
		h.subscriptions.Give(*h.lingering, 1)
		h.lingering = nil
	}
	if h.idle != nil {
		h.idleTopics.Give(*h.idle, 1)
		h.idle = nil
	}
	mine := h.holdings[key.owner]
	if mine == nil {
		mine = &holding{}
		h.holdings[key.owner] = mine
	}
	mine.subscribers++
	s := &subscriber{key: key, party: of, mine: mine}
	h.subscribers[key] = s
	return s
}

// drop removes a subscriber. The subscription of the last one is charged until the
// topic is closed.
func (h *hub) drop(s *subscriber) {
	delete(h.subscribers, s.key)
	if s.mine.subscribers--; s.mine.subscribers == 0 && s.mine.used == 0 {
		delete(h.holdings, s.key.owner)
	}
	if len(h.subscribers) > 0 {
		h.subscriptions.Give(s.party, 1)
		return
	}
	h.lingering = &s.party
	h.closeIfIdle()
}

// forget removes an unreachable or ended subscriber that holds no leases.
func (h *hub) forget(s *subscriber) {
	if _, ended := h.departed[s]; ended && s.used == 0 {
		delete(h.departed, s)
		h.closeIfIdle()
	}
	if s.to == nil && !s.awaited && s.used == 0 && h.subscribers[s.key] == s {
		h.drop(s)
	}
}

// use changes the number of leases that a subscriber holds.
func (h *hub) use(s *subscriber, n int) {
	s.used += n
	s.mine.used += n
	h.used += n
	if s.mine.subscribers == 0 && s.mine.used == 0 {
		delete(h.holdings, s.key.owner)
	}
}

// room reports whether a subscriber may have one more lease: it has credits, and its
// principal does not hold more than half of what the others leave.
func (h *hub) room(s *subscriber) bool {
	return s.used < s.credits && s.mine.used < half(maxCredits, h.used-s.mine.used)
}

// capacity returns how many leases all subscribers together may have.
func (h *hub) capacity() (all int) {
	for _, mine := range h.holdings {
		mine.takes = 0
	}
	for _, s := range h.subscribers {
		s.mine.takes += s.Takes()
	}
	for s := range h.departed {
		s.mine.takes += s.used
	}
	for _, mine := range h.holdings {
		all += max(mine.used, min(mine.takes, half(maxCredits, h.used-mine.used)))
	}
	return all
}

// fits reports whether a principal may add a subscriber, or change the credits of
// one.
func (h *hub) fits(key subscriberKey, credits int) bool {
	mine := h.holdings[key.owner]
	if mine == nil {
		mine = &holding{}
	}
	for _, s := range h.subscribers {
		if s.mine == mine && s.key != key {
			credits += s.Takes()
		}
	}
	if credits > maxCredits {
		return false
	}
	return h.subscribers[key] != nil || mine.subscribers < half(maxSubscribers, len(h.subscribers)-mine.subscribers)
}

// settleCharges returns the charges of all subscribers, when the hub stops or has
// crashed.
func (h *hub) settleCharges() {
	for _, s := range h.subscribers {
		h.subscriptions.Give(s.party, 1)
	}
	if h.lingering != nil {
		h.subscriptions.Give(*h.lingering, 1)
	}
	if h.idle != nil {
		h.idleTopics.Give(*h.idle, 1)
	}
	h.subscribers, h.departed, h.lingering, h.idle = nil, nil, nil, nil
}
