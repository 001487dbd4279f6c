// Package exchange holds the words of the exchange, the one round trip in
// which a poller settles, extends and claims leases. They are plain structs:
// a source (package redisops) fills them, a poller (package actors) consumes
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
)

var (
	// ErrUnavailable is wrapped by errors that say that the source as a whole
	// does not answer now (network, loading, failover); every topic on it is
	// affected, and the same request may be sent again.
	ErrUnavailable = errors.New("redis is unavailable")

	// ErrForbidden is wrapped by errors that say that a peer may not have what it
	// asked for over the network. Nothing was done.
	ErrForbidden = errors.New("forbidden")

	// ErrStale answers a request whose sequence is below the last one of its
	// stream: a later request has been run, this one was not.
	ErrStale = errors.New("stale exchange: a later one has been run")
)

// Token fences a lease: a settlement or an extension must present the token
// that the claim or the last extension gave. Its content is the source's
// affair.
type Token string

// Lease is the right to handle one timer until the lease ends.
type Lease struct {
	ID      string
	Token   Token
	Payload []byte

	// Activation is the instant at which the timer became due. It stays the
	// same over retries.
	Activation time.Time

	// Claims counts deliveries, this one included (so it is at least 1);
	// released ones are taken back.
	Claims int

	// Failures counts nacks.
	Failures int

	// Fault, if not empty, says why this lease cannot be given to a handler
	// (an id that is not UTF-8, say). It is to be rejected with this reason.
	Fault string
}

// Held names a lease that the caller holds.
type Held struct {
	ID    string
	Token Token
}

// Verdict is what becomes of a lease.
type Verdict uint8

const (
	// Ack removes the timer: it was handled.
	Ack Verdict = iota + 1
	// Nack counts a failure and makes the timer due again after Delay.
	Nack
	// Bury moves the timer to the dead letters with Reason.
	Bury
	// Release gives the timer back as it was before the claim: the same
	// instant, the claim not counted.
	Release
	// Fail ends a message of a queue for good: it is kept among the failed, where
	// the queue keeps those. A source of timers does not know it.
	Fail
)

// Settlement ends a lease with a verdict.
type Settlement struct {
	Held
	Verdict Verdict
	Delay   time.Duration // Nack: from the source's now; at least 0
	Reason  string        // Bury: why; Nack: the last error, kept for operators
	Failed  bool          // Bury: the last delivery counts as a failure
}

// Why says why a source refused a settlement or an extension.
type Why uint8

const (
	// Superseded: the id was scheduled again while the lease was good.
	Superseded Why = iota + 1
	// Cancelled: the timer was cancelled while the lease was good.
	Cancelled
	// Lost: the lease had ended; another holder may have the timer.
	Lost
)

func (w Why) String() string {
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

// Refusal names a settlement or an extension that changed nothing.
type Refusal struct {
	// Index counts through Request.Settle and then on through Request.Extend.
	Index int
	Why   Why
}

// Burial names a timer that the exchange made a dead letter.
type Burial struct {
	Index int       // of Request.Settle; -1: the claim gave the timer up
	Entry string    // of the dead letter; it is redriven by it
	At    time.Time // when it died, by the source's clock

	ID               string
	Claims, Failures int // those of the dead letter
	Activation       time.Time

	// Reason and Payload are given where Index is -1; else the caller has them.
	// A Payload is missing if the exchange was answered again and the dead
	// letter had been deleted by then.
	Reason  string
	Payload []byte
}

// Request is one exchange.
type Request struct {
	// Incarnation names the life of the caller that Sequence counts in; Stream
	// numbers its streams from 0. At most one request of a stream is in flight.
	Incarnation string
	Stream      int
	Sequence    uint64 // from 1

	Settle []Settlement
	Extend []Held

	// Want is the most leases to claim; 0 claims nothing.
	Want int
	// LeaseTTL is the life of what is claimed and extended.
	LeaseTTL time.Duration
}

// Reply answers a Request.
type Reply struct {
	// Now is the source's clock when the request was answered (also when it
	// was answered again).
	Now time.Time

	// Remaining is how long, from Now, what was claimed and extended is good:
	// LeaseTTL, or less when an earlier answer is given again.
	Remaining time.Duration

	// Extended is the new token of all that was extended; empty: they keep theirs.
	Extended Token

	Leases  []Lease
	Refused []Refusal

	// Buried are all that this exchange made dead letters, also when it was
	// answered again.
	Buried []Burial

	// Next is how long after Now the next timer becomes due: 0 when one is due
	// already, negative when there is none.
	Next time.Duration

	// Healed counts entries without a payload that the claim removed.
	Healed int

	// Orphans says that there are payloads or lease records without a timer;
	// a call of Heal removes them. Only an exchange that found nothing due
	// looks.
	Orphans bool
}
