// Package exchange defines the exchange, the one round trip in which a poller
// settles, extends and claims leases. Its types are plain structs: a source
// (redisops/timers, redisops/queue) answers them, a poller (actors/poller) sends
// them, and neither imports the other.
//
// # The contract of a source
//
// A source runs a Request as one atomic step: first the settlements, then the
// extensions, then the claim. It is fenced: a settlement or an extension whose
// token is not the current one changes nothing and is listed as a Refusal. It
// is replay-safe: a Request with the Sequence of the one before it on the same
// (Incarnation, Stream) is answered again and not run again, and one with a
// lower Sequence does nothing and fails with ErrStale.
//
// All instants are those of the source's clock, never of the caller's.
package exchange

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	// ErrUnavailable means that the source as a whole does not answer (network,
	// loading, failover). All of its topics are affected, and the same request may
	// be sent again.
	ErrUnavailable = errors.New("redis is unavailable")

	// ErrForbidden means that a peer has no right to what it requested over the
	// network. Nothing was done.
	ErrForbidden = errors.New("forbidden")

	// ErrStale means that a request did not run, because a later request of its
	// stream did.
	ErrStale = errors.New("stale exchange: a later one has been run")
)

// Token fences a lease: a settlement or an extension must have the token of the
// claim or of the last extension. Only the source knows its format.
type Token string

// Lease is the right to handle one timer until the lease expires.
type Lease struct {
	ID      string
	Token   Token
	Payload []byte

	// Headers are those of a message of a queue. The headers of a timer are in its
	// payload.
	Headers []wakebelltype.Header

	// Activation is the instant for which the timer was scheduled. Retries do not
	// change it.
	Activation time.Time

	// Claims counts deliveries, including this one, so it is at least 1. Released
	// ones do not count.
	Claims int

	// Failures counts nacks. Snoozed says that there is none, and that an earlier delivery was
	// snoozed, which counts as none: the timer has begun then.
	Failures int
	Snoozed  bool

	// Charge is what the claim took of rate limits.
	Charge Charge

	// Fault is why no handler can receive the lease, for example an id that is not
	// UTF-8; empty if one can. The poller rejects the timer with this reason.
	Fault string
}

// Charge is when the tokens are back that a claim took of rate limits, of the topic and of
// the key of the timer, by the clock of the source in seconds; 0: it took none. A release
// gives back what is not back by then.
type Charge struct{ Topic, Key float64 }

// Held names a lease that the caller holds.
type Held struct {
	ID    string
	Token Token

	// Granted is when Token was given out, by the source's clock; zero: unknown. It only
	// tells a Cancelled lease from a Superseded one.
	Granted time.Time
}

// Verdict is what a settlement does with a timer.
type Verdict uint8

const (
	// Ack removes the timer, because it was handled.
	Ack Verdict = iota + 1
	// Nack counts a failure and makes the timer due again after Delay.
	Nack
	// DeadLetter dead-letters the timer with Reason.
	DeadLetter
	// Release returns the timer as it was before the claim, which does not count.
	Release
	// Fail ends a message of a queue, which is kept among the failed messages if
	// the queue keeps those. Sources of timers do not support it.
	Fail
)

// Settlement ends a lease with a verdict.
type Settlement struct {
	Held
	Verdict Verdict
	Delay   time.Duration // Nack: from the source's now; at least 0
	Reason  string        // DeadLetter: the reason; Nack: the last error, for operators
	Failed  bool          // DeadLetter: whether the last delivery counts as a failure
	Snoozed bool          // Nack: the delivery counts neither as a failure nor as an attempt; queues ignore it
	Charge  Charge        // Release: that of the lease; without it no token is given back
}

// RefusalReason is the reason why a source refused a settlement or an extension.
type RefusalReason uint8

const (
	// Superseded means that the id was scheduled again before the lease expired.
	Superseded RefusalReason = iota + 1
	// Cancelled means that the timer was cancelled before the lease expired, also if its
	// id was scheduled again since.
	Cancelled
	// Lost means that the lease had expired; another handler may have the timer.
	Lost
)

func (w RefusalReason) String() string {
	switch w {
	case Superseded:
		return "superseded"
	case Cancelled:
		return "cancelled"
	case Lost:
		return "lost"
	default:
		return "unknown"
	}
}

// Refusal identifies a settlement or an extension that changed nothing.
type Refusal struct {
	// Index is the index in Request.Settle, or len(Settle) plus that in
	// Request.Extend.
	Index  int
	Reason RefusalReason
}

// PayloadMissing is the reason of the dead letter of a timer that was due and had no
// payload in the source: a claim makes it.
const PayloadMissing = "payload missing"

// DeadLettered identifies a timer that the exchange dead-lettered.
type DeadLettered struct {
	Index int       // in Request.Settle; -1 if the claim dead-lettered the timer
	Entry string    // id of the dead letter
	At    time.Time // when it was dead-lettered, by the source's clock

	ID               string
	Claims, Failures int
	Activation       time.Time
	Key              string // of the timer, in a topic with keys; empty: none

	// Reason and Payload are set if Index is -1; otherwise the caller has them.
	// Payload is empty if the exchange was repeated and the dead letter had been
	// deleted by then.
	Reason  string
	Payload []byte
}

// Request is one exchange.
type Request struct {
	// Incarnation identifies the caller from its start to its end. Sequence counts
	// the requests of one of its streams, which Stream numbers from 0. At most one
	// request of a stream is in flight.
	Incarnation string
	Stream      int
	Sequence    uint64 // from 1

	Settle []Settlement
	Extend []Held

	// Want is the maximum number of leases to claim; 0 claims nothing.
	Want int
	// Ahead is how long before their instants timers may be claimed, which the caller then
	// keeps until they are due. A source may claim fewer of them, or none.
	Ahead time.Duration
	// LeaseTTL is the lifetime of the leases that are claimed and extended.
	LeaseTTL time.Duration

	// Flow is the flow control that bounds the claim. Sources that have none ignore it.
	Flow Flow
	// KeyRun is how many timers of a key may be claimed at once if no timer holds the key, where
	// Flow.PerKey is 1, and is its only limit by key; see Reply.KeyRuns. 0 and 1: one. Sources
	// may ignore it.
	KeyRun int

	// Control is the mark of the cluster-wide settings that the caller applies; empty: it
	// does not know it. If the source has other settings, nothing is claimed.
	Control string
}

// Swept is the result of a sweep of a source.
type Swept struct {
	// Removed is the number of remains of timers that were removed.
	Removed int
	// Held is about how many payloads without a timer stay, because they are so many that
	// their timers must have been lost; 0: none. Of is the number of payloads.
	Held, Of int64
	Key      string // that has the payloads that stay
	// Mended is the number of messages of a queue whose deadlines were lost, and which have
	// new ones.
	Mended int
}

// Reply answers a Request.
type Reply struct {
	// Now is the source's clock when it answered, also if it repeats an answer.
	Now time.Time

	// Sent is when the source sent the request, by the clock of the caller, if it
	// delayed the request; else zero.
	Sent time.Time

	// Remaining is the time from Now until the claimed and extended leases expire:
	// LeaseTTL, or less if the answer is a repeated one.
	Remaining time.Duration

	// Extended is the new token of all extended leases; empty if they keep theirs.
	Extended Token

	Leases []Lease
	// KeyRuns says for each of Leases which one it follows, by its number from 1: one before it with
	// the same key. It may begin when that one has ended and is acked or dead-lettered. 0: it may
	// begin at once. It is nil if all may; only the reply to a Request with KeyRun has them.
	KeyRuns []int

	Refused []Refusal

	// DeadLettered are all timers that this exchange dead-lettered, also if the answer is
	// a repeated one.
	DeadLettered []DeadLettered

	// Next is the time from Now until the next timer is due: 0 if one is due,
	// negative if there is none.
	Next time.Duration

	// Held is the time from Now until flow control lets a timer be claimed, unless a
	// hint says that it may be earlier; 0: it holds none back.
	Held time.Duration

	// KeyHeld is the number of timers that the exchange made wait for a token of their key;
	// 0 if the answer is a repeated one.
	KeyHeld int

	// Control is the mark of the cluster-wide settings as they are now, also if the answer
	// is a repeated one; empty: the source does not know it, or has none. It changes
	// whenever they do.
	Control string

	// Healed counts timers with an instant of minus infinity, which the claim corrected.
	Healed int

	// Orphans reports that there are payloads or lease records without a timer;
	// RemoveOrphans removes them, unless they are too many. Only an exchange that found
	// nothing due checks this.
	Orphans bool
}
