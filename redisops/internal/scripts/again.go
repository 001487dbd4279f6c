package scripts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
)

const (
	firstRetry = 25 * time.Millisecond // ±50 %, doubled with each further one
	maxRetry   = time.Second
)

// Again makes a call, and makes it again while Redis is unavailable and the
// budget lasts, which counts from the beginning of the first try. No try begins
// that would outlast it by taking as long as the one before: go-redis by itself
// dials a server that refuses connections for 2 s. Every call that goes through
// it may be made twice: what it writes it writes once, or in the same way again.
func (s Runner) Again(ctx context.Context, call func() error) error {
	end := time.Now().Add(s.Retry.Budget(ctx))
	var took time.Duration // of the last try
	try := func() error {
		began := time.Now()
		err := s.findingMasters(ctx, call)
		took = time.Since(began)
		return err
	}
	err := try()
	if s.Retry == (redisops.Retry{}) || !passing(err) || time.Until(end) < took {
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
