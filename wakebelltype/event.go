package wakebelltype

import (
	"fmt"
	"time"
)

// EventKind says what happened to a timer. Newer nodes may send kinds that are not
// listed here.
type EventKind string

// Kinds of events. The fields of Event that a kind does not mention are zero.
const (
	// EventDelivered means that a handler received the timer. It has Lateness, and a Text if
	// an earlier delivery was snoozed, so that this Attempt is not the first to begin.
	EventDelivered EventKind = "delivered"
	// EventJoined means that the first attempt of a timer with a join begins. It has what ended
	// the wait in Text: the ends of all parts, or the time-out. Nodes of earlier versions send
	// none.
	EventJoined EventKind = "joined"
	// EventAcked means that the timer was handled. It has Took.
	EventAcked EventKind = "acked"
	// EventRetried means that the timer failed and will be retried. It has Took,
	// RetryIn, and the error in Text.
	EventRetried EventKind = "retried"
	// EventSnoozed means that the handler has snoozed the timer, which is no failure. It has
	// Took, RetryIn, and the reason in Text.
	EventSnoozed EventKind = "snoozed"
	// EventDead means that the timer was dead-lettered. It has Entry, the reason in
	// Text, and Took if a handler received the timer.
	EventDead EventKind = "dead"
	// EventDiscarded means that the timer was rejected and deleted; see the option
	// DiscardRejected. It has Took, and the reason in Text.
	EventDiscarded EventKind = "discarded"
	// EventExpired means that the timer could not begin within its ExpireAfter and was removed,
	// or sent to another topic. It has the reason in Text.
	EventExpired EventKind = "expired"
	// EventReleased means that the timer was returned without a verdict, for
	// instance by a drain.
	EventReleased EventKind = "released"
	// EventCrashed means that the handler panicked, which counts as a failure, or that the
	// actor with the lease failed or ended, which does not. It has Took, the reason in Text,
	// and RetryIn after a panic. A panic at the last attempt is an EventDead.
	EventCrashed EventKind = "crashed"
	// EventSuperseded means that the timer was scheduled again while its handler
	// ran.
	EventSuperseded EventKind = "superseded"
	// EventCancelled means that the timer was cancelled while its handler ran.
	EventCancelled EventKind = "cancelled"
	// EventLost means that the lease expired while the handler ran.
	EventLost EventKind = "lost"

	// EventBreaker means that the circuit breaker of a node has changed. It is about no
	// timer. Text begins with the new state: open, half-open or closed.
	EventBreaker EventKind = "breaker"
	// EventNode means that a node handles the topic. It has only Node, and is sent
	// once by each node.
	EventNode EventKind = "node"
	// EventState has the State of a Node, after its EventNode and then about every 3 s.
	// Nodes of earlier versions send none.
	EventState EventKind = "state"
	// EventLeft means that a node stops handling the topic in good order: a node that ends
	// without it has died. It has only Node. Nodes of earlier versions send none.
	EventLeft EventKind = "left"
	// EventMissed means that events of a node were dropped, because there were too
	// many or they could not be sent; Missed is their number.
	EventMissed EventKind = "missed"
	// EventAttached means that events are received from now on. It is the first
	// event, comes from no node, and is repeated when a lost connection is restored.
	EventAttached EventKind = "attached"
)

// Event is something that happened on a topic.
type Event struct {
	Kind  EventKind `json:"kind"`
	Topic string    `json:"topic"`
	Node  string    `json:"node"`        // host and process that sent the event
	At    time.Time `json:"at,omitzero"` // by Redis's clock; zero for EventNode, EventState, EventLeft, EventMissed and EventAttached

	ID      string `json:"id"`      // of the timer, at most 512 bytes
	Attempt int    `json:"attempt"` // deliveries, this one included

	Lateness time.Duration `json:"lateness_ns"` // from the activation to the delivery
	Took     time.Duration `json:"took_ns"`     // from the delivery to the end of the handler
	RetryIn  time.Duration `json:"retry_in_ns"`
	Text     string        `json:"text"`  // error or reason, at most 256 bytes
	Entry    string        `json:"entry"` // of the dead letter
	Missed   int           `json:"missed"`

	State *NodeState `json:"state,omitempty"` // of EventState
}

// NodeState is the state of a node for a topic, with all its shards.
type NodeState struct {
	Version string    `json:"version"`          // of Wakebell in the node
	Started time.Time `json:"started,omitzero"` // by the clock of the node

	// Role is primary or fallback; empty: the topic is not divided among nodes.
	Role   string `json:"role"`
	Paused bool   `json:"paused"` // by the node itself; see Control for all nodes

	// Breaker is closed, open or half-open; empty: the topic has none. The other fields are
	// of a breaker that is not closed: when it opened and when it tries the next timer, by
	// the clock of the node, and why it opened, at most 256 bytes.
	Breaker       string    `json:"breaker"`
	BreakerSince  time.Time `json:"breaker_since,omitzero"`
	BreakerUntil  time.Time `json:"breaker_until,omitzero"`
	BreakerReason string    `json:"breaker_reason"`

	// Group is the group of topics that share the handlers of the node, in the proportion
	// of their Weight; empty: the topic is in none.
	Group  string `json:"group"`
	Weight int    `json:"weight"`

	Running     int  `json:"running"`     // leases that the node holds
	Concurrency int  `json:"concurrency"` // handlers that may run at once, if that is adaptive; otherwise 0. Shards share them
	Prefetch    bool `json:"prefetch"`    // the node claims more than it has free handlers

	// ExpireAfter is the time after its instant within which a timer must begin, unless it has a
	// limit of its own; see the option Expiry. 0: none, or the node is of an earlier version.
	ExpireAfter time.Duration `json:"expire_after_ns"`

	// Longest are the handlers that have run for at least 10 s, the longest first, at most 10.
	Longest []LongRun `json:"longest,omitempty"`

	Restarts int64 `json:"restarts"` // of the topic's poller, after a failure
	Outages  int64 `json:"outages"`  // of the topic's Redis that ended, since the node started

	// Options are those of the node, which Control may override. A setting that is off
	// is 0.
	Options Settings `json:"options"`
}

// LongRun is a handler that runs for long.
type LongRun struct {
	ID      string    `json:"id"`      // of its timer
	Attempt int       `json:"attempt"` // deliveries, this one included
	Since   time.Time `json:"since"`   // when the node gave it the timer, by the clock of the node
}

// NodeRun is a handler that runs for long, and its node.
type NodeRun struct {
	LongRun
	Node string `json:"node"` // as in Overview.Division
}

// NodeReport is what a node has last stored of its State for a topic.
type NodeReport struct {
	Node  string    `json:"node"` // as in Overview.Division
	State NodeState `json:"state"`
}

// UnaskedError reports topics whose nodes were not asked, because Redis denies their channels
// to the user. It wraps ErrChannelDenied. The answers of the other topics come with it.
type UnaskedError struct {
	Topics []string
	Err    error // of Redis
}

// Error names up to three of the topics.
func (e *UnaskedError) Error() string {
	const named = 3
	text := fmt.Sprintf("ask the nodes of %q", e.Topics[:min(named, len(e.Topics))])
	if more := len(e.Topics) - named; more > 0 {
		text += fmt.Sprintf(" and %d more topics", more)
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns the error of Redis, and so ErrChannelDenied.
func (e *UnaskedError) Unwrap() error { return e.Err }

// NodeAnswer is what a node answered when it was asked about a topic.
type NodeAnswer struct {
	Topic string     `json:"topic"`
	Node  string     `json:"node"`            // as in Event.Node
	State *NodeState `json:"state,omitempty"` // nil: the node is of an earlier version
}
