package leasing

import "time"

// Outcome is the result of a delivery. The zero value is success.
type Outcome struct {
	Kind   OutcomeKind
	Delay  time.Duration // FailedFor, Snoozed
	Reason string        // the text of the error

	// Of the call of user code, if it is measured for adaptive concurrency.
	Took           time.Duration
	Further, Small bool // as in guard.Sample
}

// OutcomeKind is what became of a delivery.
type OutcomeKind uint8

// Outcomes.
const (
	Succeeded     OutcomeKind = iota
	Failed                    // retried after the topic's backoff
	FailedFor                 // retried after Delay
	Rejected                  // never retried
	Undeliverable             // no handler can decode it
	Panicked                  // a failure, retried when the lease would have expired
	Crashed                   // ended without a verdict: due again when the lease expires
	Released                  // returned as if never claimed
	Skipped                   // its context ended before a handler began
	Snoozed                   // due again after Delay; no failure, and no attempt
	Expired                   // ended, because it was too late to begin
	ExpiredDead               // the same, as a dead letter
)

// Tells reports whether an outcome says something about the handler, for the breaker and for
// adaptive concurrency.
func (k OutcomeKind) Tells() bool { return !saysNothing[k] }

var saysNothing = [...]bool{Released: true, Skipped: true, Undeliverable: true, Snoozed: true, Expired: true, ExpiredDead: true}

// retries reports whether the outcome leads to a retry.
func (o Outcome) retries() bool { return o.Kind == Failed || o.Kind == FailedFor }
