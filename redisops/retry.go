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
