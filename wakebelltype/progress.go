package wakebelltype

import "time"

// Progress is how far the handler of a timer is, as it reported it last.
type Progress struct {
	Fraction float64   `json:"fraction"` // 0 to 1
	Note     string    `json:"note"`     // at most 256 bytes
	At       time.Time `json:"at"`       // when it was stored, by Redis's clock
	Attempt  int       `json:"attempt"`  // the delivery that reported it
}

// End says how a timer has ended. Newer versions may have others.
type End string

const (
	// EndDone means that a handler acknowledged the timer.
	EndDone End = "done"
	// EndDead means that the timer became a dead letter, or was discarded.
	EndDead End = "dead"
	// EndCancelled means that the timer was cancelled, or that it was removed and no node
	// reported that a handler ended it.
	EndCancelled End = "cancelled"
	// EndExpired means that the timer could not begin within its ExpireAfter, and was removed or
	// sent to another topic.
	EndExpired End = "expired"
	// EndMissing means that there is no timer, and nothing says whether there was one: it
	// ended before, without a result and without a dead letter among the last 1,000.
	EndMissing End = "missing"
)
