package redisops

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// runner runs scripts on one Redis.
type runner struct {
	rdb redis.UniversalClient

	// Retry has calls made again while Redis is unavailable. Set it before use;
	// the zero value has each made once, as a source's exchanges must be.
	Retry Retry
}

// run runs a script by its hash, or as a whole where Redis does not know it;
// either way it is one script, never its commands one by one.
func (s runner) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	var reply any
	err := s.again(ctx, func() (err error) {
		reply, err = s.try(ctx, script, keys, args...)
		return err
	})
	return reply, err
}

// try is run without another try.
func (s runner) try(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	reply, err := script.Run(ctx, s.rdb, keys, args...).Result()
	return reply, wrap(ctx, keys, s.moved(ctx, err))
}

// runText runs a script that answers one string.
func (s runner) runText(ctx context.Context, script *redis.Script, keys []string, args ...any) (string, error) {
	return asText(s.run(ctx, script, keys, args...))
}

func asText(reply any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, ok := reply.(string)
	if !ok {
		return "", fmt.Errorf("%w: %T, want a string", errReply, reply)
	}
	return text, nil
}

// runList runs a script that answers a list of at least n values.
func (s runner) runList(ctx context.Context, n int, script *redis.Script, keys []string, args ...any) ([]any, error) {
	reply, err := s.run(ctx, script, keys, args...)
	return asList(n, reply, err)
}

func asList(n int, reply any, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok || len(list) < n {
		return nil, fmt.Errorf("%w: %T, want a list of at least %d", errReply, reply, n)
	}
	return list, nil
}

// texts asserts that all values are strings.
func texts(list []any) ([]string, error) {
	out := make([]string, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%w: %T in a list, want a string", errReply, v)
		}
		out[i] = text
	}
	return out, nil
}
