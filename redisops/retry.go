package redisops

import (
	"context"
	"time"
)

// Retry is for how long a call is made again while Redis is unavailable. The
// zero value is: not at all.
type Retry struct {
	// Otherwise is how long, where the context has no deadline.
	Otherwise time.Duration
	// Most bounds it where the context has a later deadline; 0: it does not.
	Most time.Duration
}

// defaultRetry is the budget of a call whose context has no deadline.
const defaultRetry = 2 * time.Second

// RetryFor is the Retry of a client's RetryFor: 0 means until the deadline of the
// context, or 2 s without one; a positive d bounds both; a negative d means that
// each call is made once.
func RetryFor(d time.Duration) Retry {
	switch {
	case d < 0:
		return Retry{}
	case d == 0:
		return Retry{Otherwise: defaultRetry}
	default:
		return Retry{Otherwise: d, Most: d}
	}
}

// Budget is how long a call that begins now may take with its retries.
func (r Retry) Budget(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return r.Otherwise
	}
	left := time.Until(deadline)
	if r.Most > 0 {
		left = min(left, r.Most)
	}
	return left
}
