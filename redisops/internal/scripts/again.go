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
	firstRetry = 25 * time.Millisecond // ±50 %, doubled for each further retry
	maxRetry   = time.Second
)

// Again makes a call, and retries it while Redis is unavailable and the budget
// lasts. The budget counts from the beginning of the first try. No try begins that
// would exceed the budget if it took as long as the previous one, because go-redis
// itself dials a server that refuses connections for 2 s. Every call may run twice,
// so its writes must be idempotent.
func (s Runner) Again(ctx context.Context, call func() error) error {
	end := time.Now().Add(s.Retry.Budget(ctx))
	var took time.Duration // duration of the last try
	try := func() error {
		began := time.Now()
		answered := s.watchMasters(ctx)
		err := call()
		answered(err)
		took = time.Since(began)
		return err
	}
	err := try()
	if err == nil || s.Retry == (redisops.Retry{}) || !passing(err) || time.Until(end) < took {
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
		// The context ended during a delay or a try. The last error says why it
		// took so long.
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// passing reports whether an error may be temporary. A client that was closed stays
// closed.
func passing(err error) bool {
	return errors.Is(err, exchange.ErrUnavailable) && !errors.Is(err, redis.ErrClosed)
}
