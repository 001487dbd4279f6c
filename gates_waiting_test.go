package wakebell_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
)

// Waiting needs no polling: the commands of a process do not grow with the number of
// its waiters.
func TestWaitingIsCheap(t *testing.T) {
	t.Parallel()
	for what, gates := range map[string]int{"1000 waiters at a gate": 1, "1000 gates with a waiter each": 1000} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T) { waitAt(t, gates, 1000) })
		})
	}
}

// waitAt lets a process wait that often at gates that another one holds, and counts
// its commands.
func waitAt(t *testing.T, gates, waiters int) {
	t.Helper()
	rdb, _ := redistest.Embedded(t)
	other := redis.NewClient(rdb.Options())
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	sent := &callCount{}
	other.AddHook(sent)
	holder, waiter := gatesOn(t, rdb, gate.Config{}), gatesOn(t, other, gate.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var turns []gate.Turn
	for n := range waiters {
		name := "gate" + strconv.Itoa(n%gates)
		if n < gates {
			turns = append(turns, acquire(t, holder, name))
		}
		all.Go(func() {
			if _, err := waiter.Acquire(ctx, name); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	<-time.After(5 * time.Second)
	before := sent.Load()
	<-time.After(30 * time.Second)
	commands := sent.Load() - before
	require.LessOrEqual(t, commands, int64(3*30), "at most 3 a second")
	t.Logf("%d commands in 30 s", commands)
	cancel()
	all.Wait()
	for _, turn := range turns {
		release(t, turn)
	}
}

// callCount counts commands.
type callCount struct{ atomic.Int64 }

func (c *callCount) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *callCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *callCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.Add(1)
		return next(ctx, cmd)
	}
}
