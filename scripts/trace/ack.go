package main

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ack is a hook that holds the answers of Redis back once it has the ack of the last timer, until
// that timer is counted: what a node does with such an answer is not on the timer's way, and
// whether it would be counted is a matter of microseconds.
type ack struct {
	redis   *redis.Client // without this hook
	awaited atomic.Bool
	seen    chan error    // tells that Redis has the ack
	counted chan struct{} // closed when the timer is counted
}

// hold adds the hook to a client, before anyone uses it.
func hold(rdb *redis.Client) *ack {
	a := &ack{redis: redis.NewClient(&redis.Options{Addr: rdb.Options().Addr}), seen: make(chan error, 1), counted: make(chan struct{})}
	rdb.AddHook(a)
	return a
}

// end lets all answers pass.
func (a *ack) end() error {
	a.awaited.Store(false)
	close(a.counted)
	return a.redis.Close()
}

func (a *ack) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *ack) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer a.answered()
		return next(ctx, cmd)
	}
}

func (a *ack) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer a.answered()
		return next(ctx, cmds)
	}
}

// answered holds an answer back if Redis has the ack.
func (a *ack) answered() {
	if !a.awaited.Load() {
		return
	}
	pending, err := a.redis.ZCard(context.Background(), "timers_timeline:"+topic.Name()).Result()
	if err == nil && pending > 0 {
		return
	}
	select {
	case a.seen <- err:
	default: // another answer has told
	}
	<-a.counted
}
