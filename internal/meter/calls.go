// Package meter measures a process that uses Redis: its CPU time and its calls.
// It is used by `wakebell bench` and by the module in bench/.
package meter

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Calls counts the commands that a client sends.
type Calls struct{ sent atomic.Int64 }

// CountCalls starts counting the commands of rdb.
func CountCalls(rdb redis.UniversalClient) *Calls {
	c := &Calls{}
	rdb.AddHook(c)
	return c
}

// Count returns the number of commands so far.
func (c *Calls) Count() int64 { return c.sent.Load() }

// DialHook does nothing.
func (c *Calls) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook counts a command.
func (c *Calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts the commands of a pipeline.
func (c *Calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
