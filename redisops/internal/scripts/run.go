package scripts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
)

// Runner runs scripts on one Redis.
type Runner struct {
	// RDB is the client; its owner closes it.
	RDB redis.UniversalClient

	// Retry bounds retries while Redis is unavailable. Set it before use. The zero
	// value disables retries, which the exchanges of a source require.
	Retry redisops.Retry

	// Metrics measures the calls. Set it before use; nil measures nothing.
	Metrics *metrics.Metrics

	// Batcher collects the calls of RunBatched. Set it before use; nil sends each alone.
	Batcher *Batcher
}

// Run runs a script by its hash, or sends its text if Redis does not know the hash.
// Either way it is one script, never its commands one by one.
func (s Runner) Run(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	cluster, clustered := s.RDB.(*redis.ClusterClient)
	switch {
	case s.Retry != (redisops.Retry{}):
		return s.runAgain(ctx, script, keys, args)
	case clustered: // the exchanges
		return s.runOnCluster(ctx, cluster, script, keys, values(args))
	default:
		return s.Try(ctx, script, keys, args...) // the exchanges: no closures, which cost allocations
	}
}

// runOnCluster runs a script once, on the master or its successor.
func (s Runner) runOnCluster(ctx context.Context, cluster *redis.ClusterClient, script *redis.Script, keys []string, args []any) (any, error) {
	reply, err := askSuccessors(ctx, cluster, keys[0], func(ctx context.Context, rdb redis.UniversalClient) (any, error) {
		return script.Run(ctx, rdb, keys, args...).Result()
	})
	if err = s.failed(ctx, keys, err); errors.Is(err, exchange.ErrUnavailable) {
		s.findMasters(ctx)
	}
	return reply, err
}

func (s Runner) runAgain(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	var reply any
	err := s.Again(ctx, func() (err error) {
		reply, err = s.Try(ctx, script, keys, args...)
		return err
	})
	return reply, err
}

// Try runs a script as Run does, without retries.
func (s Runner) Try(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	reply, err := script.Run(ctx, s.RDB, keys, args...).Result()
	if err != nil {
		return reply, s.failed(ctx, keys, err)
	}
	return reply, nil
}

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
	if _, clustered := s.RDB.(*redis.ClusterClient); clustered {
		once := call
		call = func() error { return s.watched(ctx, once) }
	}
	began := time.Now()
	err := call()
	if err == nil || s.Retry == (redisops.Retry{}) || !passing(err) {
		return err
	}
	return s.retry(ctx, call, err, began)
}

// retry makes a call again whose first try began at an instant and failed with err.
func (s Runner) retry(ctx context.Context, call func() error, err error, began time.Time) error {
	end, took := s.Retry.End(ctx, began), time.Since(began) // took: of the last try
	if time.Until(end) < took {
		return err
	}
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval, delays.Multiplier = firstRetry, maxRetry, 2
	last, tries := err, 0
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		if tries++; tries > 1 {
			began = time.Now()
			err = call()
			took = time.Since(began)
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

// failed wraps and counts the error of a script; nil stays nil.
func (s Runner) failed(ctx context.Context, keys []string, err error) error {
	if err != nil {
		if err = Wrap(ctx, keys, s.Moved(ctx, err)); !errors.Is(err, ErrStaleLayout) { // it is repeated
			s.Metrics.ScriptFailed(ctx, err)
		}
	}
	return err
}

// RunText runs a script that returns one string.
func (s Runner) RunText(ctx context.Context, script *redis.Script, keys []string, args ...any) (string, error) {
	return AsText(s.Run(ctx, script, keys, args...))
}

// AsText asserts that a reply is a string.
func AsText(reply any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, ok := reply.(string)
	if !ok {
		return "", fmt.Errorf("%w: %T, want a string", ErrReply, reply)
	}
	return text, nil
}

// RunList runs a script that returns a list of at least n values.
func (s Runner) RunList(ctx context.Context, n int, script *redis.Script, keys []string, args ...any) ([]any, error) {
	reply, err := s.Run(ctx, script, keys, args...)
	return asList(n, reply, err)
}

func asList(n int, reply any, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok || len(list) < n {
		return nil, fmt.Errorf("%w: %T, want a list of at least %d", ErrReply, reply, n)
	}
	return list, nil
}

// AsTexts asserts that a reply is a list of at least n strings.
func AsTexts(n int, reply any, err error) ([]string, error) {
	list, err := asList(n, reply, err)
	if err != nil {
		return nil, err
	}
	return Texts(list)
}

// Texts asserts that all values are strings.
func Texts(list []any) ([]string, error) {
	out := make([]string, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%w: %T in a list, want a string", ErrReply, v)
		}
		out[i] = text
	}
	return out, nil
}

// ErrStaleLayout reports that a call was routed with a layout that its topic does not have
// any more. Nothing was written.
var ErrStaleLayout = errors.New("the layout of the topic has changed")

// Guard is a condition that lua/fence.lua checks before a script writes.
type Guard struct {
	Code byte   // l: of a layout; p: of pins
	Key  string // that has it
	Want string // the identity of the layout, or the call
}

// WithGuards adds guards to the keys and arguments of a script with the part fence. Such a
// script needs its argument without guards, too.
func WithGuards(guards []Guard, keys []string, args []any) ([]string, []any) {
	if len(guards) == 0 {
		return keys, append(args, "")
	}
	codes := make([]byte, len(guards))
	for i, g := range guards {
		codes[i] = g.Code
		keys, args = append(keys, g.Key), append(args, g.Want)
	}
	return keys, append(args, string(codes))
}
