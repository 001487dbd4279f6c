package gates_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// Waiting needs no polling: the commands of a process do not grow with the number of
// its waiters.
func TestWaitingIsCheap(t *testing.T) {
	t.Parallel()
	for what, gates := range map[string]int{"1000 waiters at a gate": 1, "1000 gates with a waiter each": 1000} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			stacktest.Virtually(t, func(t *testing.T) { waitAt(t, gates, 1000) })
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
	sent := &stacktest.CallCount{}
	other.AddHook(sent)
	holder, waiter := stacktest.GatesOn(t, rdb, gate.Config{}), stacktest.GatesOn(t, other, gate.Config{})
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
