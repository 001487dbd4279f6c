package wakebelltype

import (
	"errors"
	"fmt"
	"time"
)

// Policy is what scheduling does if a timer of the same id exists.
type Policy uint8

const (
	// PolicyReplace replaces the body and the instant. A running handler is
	// superseded: it continues, and its verdict is ignored.
	PolicyReplace Policy = iota
	// PolicyKeep keeps the existing timer.
	PolicyKeep
	// PolicyEarliest replaces a pending timer if the new instant is before that of
	// its next delivery, and otherwise keeps it. For a timer that is due, and waits for
	// its key or for a token, or whose lease has expired, that is the instant since which
	// it is due. A running handler is superseded.
	PolicyEarliest
	// PolicyDebounce moves the timer, with the new body. The option
	// wakebell.Debounce sets it; IfExists does not accept it.
	PolicyDebounce
)

// Outcome is what scheduling found under the id and did with it.
type Outcome uint8

const (
	// OutcomeCreated means that the id was free.
	OutcomeCreated Outcome = iota + 1
	// OutcomeReplaced means that a pending timer was replaced.
	OutcomeReplaced
	// OutcomeSuperseded means that a timer was replaced while its handler ran.
	OutcomeSuperseded
	// OutcomeKeptPending means that a pending timer was kept.
	OutcomeKeptPending
	// OutcomeKeptRunning means that a timer was kept whose handler runs.
	OutcomeKeptRunning
	// OutcomeKeptEarlier means that PolicyEarliest kept a pending timer, because it
	// is not due later than the new instant.
	OutcomeKeptEarlier
	// OutcomeMoved means that Debounce or Reschedule moved a pending timer.
	OutcomeMoved
	// OutcomeAlreadyDone means that a timer that was scheduled with Once is gone;
	// nothing was written.
	OutcomeAlreadyDone
)

// Scheduled is the result of scheduling a timer.
type Scheduled struct {
	ID string `json:"id"`

	// Due is when the timer is due, by Redis's clock. For a timer that was kept it
	// is its activation, and for OutcomeAlreadyDone the instant at which it was due.
	Due time.Time `json:"due,omitzero"`

	// Outcome says whether the timer is new, and otherwise what was found.
	Outcome Outcome `json:"outcome"`

	// Found is the instant at which the timer that was found is due next; for a
	// running one it is the expiry of its lease. Zero if none was found.
	Found time.Time `json:"found,omitzero"`

	// Replicas is the number of replicas that confirmed the timer; 0 if none were
	// requested.
	Replicas int `json:"replicas"`
}

// Presence is the state in which a call found a timer.
type Presence uint8

const (
	// PresenceAbsent means that no timer has the id.
	PresenceAbsent Presence = iota + 1
	// PresencePending means that the timer waited. A timer that a Python peer
	// handles is reported as PresencePending too.
	PresencePending
	// PresenceRunning means that a handler of a Wakebell node has the timer.
	PresenceRunning
)

// ErrTooFewReplicas means that a timer is stored, and that fewer replicas
// confirmed it in time than WithReplicas requested. Errors with it wrap a
// ReplicasError.
var ErrTooFewReplicas = errors.New("too few replicas confirmed")

// ReplicasError has the number of replicas that confirmed a timer. It wraps
// ErrTooFewReplicas.
type ReplicasError struct {
	Want   int           `json:"want"`
	Got    int           `json:"got"`
	Waited time.Duration `json:"waited_ns"`
}

func (e *ReplicasError) Error() string {
	return fmt.Sprintf("stored, but %v: %d of %d within %v", ErrTooFewReplicas, e.Got, e.Want, e.Waited)
}

// Unwrap returns ErrTooFewReplicas.
func (e *ReplicasError) Unwrap() error { return ErrTooFewReplicas }
