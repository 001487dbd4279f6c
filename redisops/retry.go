package redisops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
)

const (
	firstRetry = 25 * time.Millisecond // ±50 %, doubled with each further one
	maxRetry   = time.Second
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

// budget is how long a call that begins now may take with its retries.
func (r Retry) budget(ctx context.Context) time.Duration {
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

// again makes a call, and makes it again while Redis is unavailable and the
// budget lasts, which counts from the beginning of the first try. No try begins
// that would outlast it by taking as long as the one before: go-redis by itself
// dials a server that refuses connections for 2 s. Every call that goes through
// it may be made twice: what it writes it writes once, or in the same way again.
func (s *Timers) again(ctx context.Context, call func() error) error {
	end := time.Now().Add(s.Retry.budget(ctx))
	var took time.Duration // of the last try
	try := func() error {
		began := time.Now()
		err := s.findingMasters(ctx, call)
		took = time.Since(began)
		return err
	}
	err := try()
	if s.Retry == (Retry{}) || !passing(err) || time.Until(end) < took {
		return err
	}
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval, delays.Multiplier = firstRetry, maxRetry, 2
	last, tries := err, 0
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		if tries++; tries > 1 {
			err = try()
		}
		if err != nil && (!passing(err) || time.Until(end) < took) {
			return struct{}{}, backoff.Permanent(err)
		}
		last = err
		return struct{}{}, err
	}, backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(time.Until(end)))
	if ctx.Err() != nil && err != nil && !errors.Is(err, exchange.ErrUnavailable) {
		// It ended during a delay or a try: why it took so long is worth knowing.
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// passing reports whether an error is one that time alone may cure soon. A
// client that was closed stays closed.
func passing(err error) bool {
	return errors.Is(err, exchange.ErrUnavailable) && !errors.Is(err, redis.ErrClosed)
}
