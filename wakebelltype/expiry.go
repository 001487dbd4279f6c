package wakebelltype

import "time"

// Expiry says when timers of a topic are too late to begin, and what becomes of them. By
// default they are removed.
type Expiry struct {
	// After is the time after its instant within which a timer must begin, 1 ms to 365 days;
	// 0: only timers that have a limit of their own expire.
	After time.Duration
	// DeadLetter makes dead letters of them.
	DeadLetter bool
	// Topic is where they are sent, named without prefix: they are due there at once; empty:
	// nowhere. It excludes DeadLetter.
	Topic string
}

// ExpiryHeader is the header of a timer with its own limit, a duration such as 1m30s. A value
// that is none, or out of bounds, has no effect.
const ExpiryHeader = "wakebell-expire-after"

// The headers of a timer that was sent to another topic because it had expired.
const (
	ExpiredFromHeader   = "wakebell-expired-from"   // its topic, without prefix
	ExpiredReasonHeader = "wakebell-expired-reason" // how late it was
)

// Bounds of the time after which timers expire.
const (
	MinExpiry = time.Millisecond
	MaxExpiry = 365 * 24 * time.Hour
)
