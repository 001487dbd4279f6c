package remote

import (
	"time"

	"github.com/wakebell/wakebell/messages"
)

var (
	// boundSubscriptions bounds the subscriptions. Every topic that is open for
	// subscribers has one.
	boundSubscriptions = bound{"subscriptions", 2_000, 4_000, 10_000}
	// boundIdleTopics bounds the topics without a subscriber that stay open for
	// topicGrace; beyond it they close at once.
	boundIdleTopics = bound{"topics that their last subscriber has left", 256, 512, 2_048}
	// boundOperations bounds the calls of Operations that end soon.
	boundOperations = bound{"operations", 16, 48, 64}
	// boundLongOperations bounds those that may go on for as long as the caller reads:
	// Tail, RedriveDead, and listings.
	boundLongOperations = bound{"operations that go on: Tail, RedriveDead and listings", 16, 48, 128}
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

// party is what a resource is charged to.
type party struct{ principal, host string }

// charge takes one of a resource, or returns why there is none for the holder.
func (s *shares) charge(of party) *messages.Error {
	if err := s.take(of.principal, of.host, 1); err != nil {
		return messages.Failure(messages.Code_CODE_OVERLOADED, err.Error())
	}
	return nil
}

// discharge gives it back.
func (s *shares) discharge(of party) { s.give(of.principal, of.host, 1) }

// half is how much one of several may hold of a resource of which the others hold
// so much already: at most half of what they leave, so that there is always some
// left for the next. At least 1.
func half(most, others int) int { return max(1, (most-others)/2) }
