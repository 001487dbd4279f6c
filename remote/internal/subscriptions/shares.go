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
	// maxSubscribers bounds those of a topic at a node. One principal has at most
	// half of what the others on the topic leave.
	maxSubscribers = 1000
	maxName        = 512 // bytes of a topic
	maxSubscriber  = 256 // bytes of a subscriber's name
)

// half is how much one of several may hold of a resource of which the others hold
// so much already: at most half of what they leave, so that there is always some
// left for the next. At least 1.
func half(most, others int) int { return max(1, (most-others)/2) }

// holding is what the subscribers of one principal have of a topic.
type holding struct {
	subscribers int
	takes       int // leases that the topic may have for them, by capacity
	used        int // leases that they hold
}

// join makes a subscriber, charged to its holder.
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

// drop forgets a subscriber. The last one's subscription is charged until the
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

// use counts leases that a subscriber holds, or no longer holds.
func (h *hub) use(s *subscriber, n int) {
	s.used += n
	s.mine.used += n
	h.used += n
	if s.mine.subscribers == 0 && s.mine.used == 0 {
		delete(h.holdings, s.key.owner)
	}
}

// room reports whether a subscriber may have one more lease: it has credits, and
// its principal does not hold more than half of what the others leave.
func (h *hub) room(s *subscriber) bool {
	return s.used < s.credits && s.mine.used < half(maxCredits, h.used-s.mine.used)
}

// capacity is how many leases all subscribers may have.
func (h *hub) capacity() (all int) {
	for _, mine := range h.holdings {
		mine.takes = 0
	}
	for _, s := range h.subscribers {
		s.mine.takes += s.Takes()
	}
	for _, mine := range h.holdings {
		all += max(mine.used, min(mine.takes, half(maxCredits, h.used-mine.used)))
	}
	return all
}

// fits reports whether a principal may have a subscriber more, or one with more
// credits.
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

// settleCharges takes the charges of all subscribers back: the hub ends or has crashed.
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
	h.subscribers, h.lingering, h.idle = nil, nil, nil
}
