package wakebelltype

import "time"

// DeadFilter selects dead letters; the zero value selects all. Ages are by Redis's
// clock at the time each page is read.
type DeadFilter struct {
	Entry        string        // only this one
	Reason       string        // only those whose reason contains this text
	ReasonPrefix string        // only those whose reason begins with this text
	OlderThan    time.Duration // only those dead-lettered at least this long ago; 0: all
	NewerThan    time.Duration // only those dead-lettered at most this long ago; 0: all
}

// RedriveOptions select dead letters and set the rate of a redrive. The zero value
// redrives all, 100 a second, and does not overwrite live timers.
type RedriveOptions struct {
	Filter DeadFilter

	// In is the delay after which the timers are due; default 0, due at once.
	In time.Duration
	// Overwrite redrives a dead letter even if a timer of the same id exists, which
	// it replaces. By default such a dead letter is skipped.
	Overwrite bool
	// Rate is how many timers are created per second, 1 to 10,000; 0 means 100.
	Rate int
	// Each, if not nil, is called with each dead letter and its outcome, from the
	// goroutine of Redrive.
	Each func(RedrivenLetter)
}

// RedriveOutcome is the outcome of the redrive of one dead letter.
type RedriveOutcome uint8

const (
	// RedriveSucceeded means that the dead letter is a timer again.
	RedriveSucceeded RedriveOutcome = iota + 1
	// RedriveOverwrote means that the dead letter is a timer again and replaced a
	// timer of the same id.
	RedriveOverwrote
	// RedriveSkippedLive means that the dead letter stays, because a timer of the
	// same id exists.
	RedriveSkippedLive
	// RedriveSkippedBroken means that the dead letter stays, because it has no id or
	// no payload.
	RedriveSkippedBroken
)

// RedrivenLetter names a dead letter and the outcome of its redrive.
type RedrivenLetter struct {
	Entry   string         `json:"entry"` // of the dead letter
	ID      string         `json:"id"`    // of the timer
	Outcome RedriveOutcome `json:"outcome"`
}

// RedriveResult counts dead letters by the outcome of their redrive.
type RedriveResult struct {
	Redriven      int64 `json:"redriven"`
	Overwritten   int64 `json:"overwritten"`
	SkippedLive   int64 `json:"skipped_live"`
	SkippedBroken int64 `json:"skipped_broken"`
}

// Add counts a dead letter.
func (r *RedriveResult) Add(o RedriveOutcome) {
	switch o {
	case RedriveSucceeded:
		r.Redriven++
	case RedriveOverwrote:
		r.Overwritten++
	case RedriveSkippedLive:
		r.SkippedLive++
	case RedriveSkippedBroken:
		r.SkippedBroken++
	}
}
