package redisops

import (
	"context"
	"time"
)

// Retry bounds the time for which a call is retried while Redis is unavailable. The
// zero value disables retries.
type Retry struct {
	// Otherwise is the bound when the context has no deadline.
	Otherwise time.Duration
	// Most bounds the time when the context has a later deadline; 0 means no bound.
	Most time.Duration
}

// defaultRetry is the budget of a call whose context has no deadline.
const defaultRetry = 2 * time.Second

// RetryFor returns the Retry for a client's RetryFor setting: 0 means until the
// deadline of the context, or 2 s without one; a positive d bounds both; a negative
// d disables retries.
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

// End returns until when a call that began at an instant may take, retries included.
func (r Retry) End(ctx context.Context, began time.Time) time.Time {
	end, bounded := ctx.Deadline()
	if !bounded {
		return began.Add(r.Otherwise)
	}
	if most := began.Add(r.Most); r.Most > 0 && most.Before(end) {
		return most
	}
	return end
}

// Budget returns how long a call that begins now may take, retries included.
func (r Retry) Budget(ctx context.Context) time.Duration {
	now := time.Now()
	return r.End(ctx, now).Sub(now)
}
