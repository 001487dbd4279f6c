package leasing

import (
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Effects is what a Core has its caller do. No method waits, and none calls the Core: what
// takes time is answered by a later event.
type Effects interface {
	// Open prepares a stream, which is numbered from 0.
	Open(stream int)
	// Send sends a flight, and sets Flight.Sent just before. A stream has one at most until
	// Answered, Failed or Peeked brings its answer.
	Send(f *Flight)

	// Watch peeks as Watch.Answered says, and Watched brings the end, unless EndWatch came
	// before. EndWatch returns when the next peek would have been sent, or zero: one is in
	// flight, and Answered may still be called.
	Watch(w *Watch)
	EndWatch() (next time.Time)

	// ReadOverride reads the override, which OverrideRead brings.
	ReadOverride()
	// Announce announces this node in the division of the topic; Announced has the answer.
	Announce(action exchange.AnnounceAction)
	// AskForHelp asks the announced nodes up to a rank to claim as well.
	AskForHelp(rank int)
	// Report stores the state of this node for operators, or removes it; then comes Reported.
	Report(withdraw bool)
	// RemoveOrphans removes the remains of timers that no longer exist, unless they are too
	// many; then comes OrphansRemoved.
	RemoveOrphans()

	// Tell reports to the supervisor whether Redis is available. err is set if it is not.
	Tell(a Availability, err error)
	// Drained ends a drain. unfinished are the ids of timers whose handlers did not return.
	Drained(unfinished []string, unsettled int)

	Handlers
	Observer
}

// Handlers is the queue from which handlers take leases.
type Handlers interface {
	// NewLease returns a claimed lease with its Run. at is the source's clock.
	NewLease(claimed *exchange.Lease, at time.Time) *Lease
	// Push gives a lease to the next free handler, and Pushed ends a series of them.
	Push(l *Lease)
	Pushed(leases int)
	// TakeBack takes the last n leases back that no handler has begun, or as many as there are.
	TakeBack(n int) []*Lease
	// Oldest is when the first lease that no handler has begun was pushed; zero: none waits.
	Oldest() time.Time
	// Occupied is the number of slots that no lease occupies and no handler can use: of handlers
	// that are restarted, and of batches that are not full.
	Occupied() int
	// Tune sets how many handlers may run at once, and for how long a batch waits to be full.
	Tune(concurrency int, batchWait time.Duration)
}

// Run is the handler of one lease.
type Run interface {
	// Begun reports whether the handler has begun. At is when, if the lease may have waited for
	// others of its batch before; else zero.
	Begun() (begun bool, at time.Time)
	// Awaits reports whether it waits for the answer of a target: until then the lease is
	// extended only at the target's request.
	Awaits() bool
	// Hung reports whether a lease of the same batch has reached the maximum age.
	Hung() bool
	// End ends the context of the handler with a cause, and Cause returns the cause; nil: it
	// has not ended, or the handler had returned before.
	End(cause error)
	Cause() error
	// Abandon frees the slot of a handler that runs for too long. It reports whether this
	// lease is the first of its batch that is abandoned: the age bounds the call of all.
	Abandon() (first bool)
	// Expires says when the lease expires by the local clock.
	Expires(deadline time.Time)
	// Extended answers those that wait for an extension, and Settled the one that waits for
	// the settlement, if there is one.
	Extended(err error)
	Settled(err error)
}

// Observer learns what happens to timers, for events, records, logs and the hook for dead
// letters. No decision depends on it.
type Observer interface {
	// Settled is called when the settlements of a flight are confirmed, except for those
	// whose leases the source refused.
	Settled(f *Flight)
	// DeadLettered is called for each dead letter, with the settlement that has made it one; nil:
	// none has.
	DeadLettered(d exchange.DeadLettered, by *Settlement)
	// Ended is called when a delivery ends without a settlement.
	Ended(l *Lease, e End)
	// Hung is called for a handler, or a batch, that has reached the maximum lease age, and had
	// its timer for age.
	Hung(l *Lease, age time.Duration)
	// Abandoned is called for a handler that ignores its context at the end of a drain.
	Abandoned(l *Lease)
	// BreakerChanged is called with the reason of the failure that opened the breaker.
	BreakerChanged(change guard.Change, until time.Time, failure string)
	// RoleChanged is called when this node has another role in the division of the topic.
	RoleChanged(role string, nodes int)
	// ExchangeFailed is called when an exchange of this topic alone has failed, for the nth
	// time in a row.
	ExchangeFailed(err error, n int)
}

// End is why a delivery ended without a settlement.
type End struct {
	Kind    wakebelltype.EventKind // EventLost, EventSuperseded, EventCancelled, EventCrashed, or EventRetried: its lease is left to expire
	Why     string
	Took    time.Duration
	RetryIn time.Duration // EventRetried
}

// Availability is what a poller knows of its Redis.
type Availability uint8

const (
	// Available: it has answered.
	Available Availability = iota
	// Unavailable: the core sends nothing until Probe or Resume.
	Unavailable
	// Unprobed: this topic cannot try it now.
	Unprobed
)
