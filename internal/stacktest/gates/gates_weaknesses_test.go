package gates_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// These tests cover the weaknesses that were shown in redis-fifo-lock, by their
// numbers. Those about waiting use virtual time, in which nothing but waiting takes
// any.

// 1 and 5: a live holder is not evicted, however long it holds the turn and with any
// number of waiters.
func TestLiveHolderIsNotEvicted(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g, other := stacktest.GatesOn(t, rdb, gate.Config{}), stacktest.GatesOn(t, rdb, gate.Config{})
		turn := acquire(t, g, "gate")
		next := waits(t, other, "gate")
		select {
		case <-next:
			require.Fail(t, "the gate has two holders")
		case <-turn.Context().Done():
			require.Fail(t, "the turn was lost", context.Cause(turn.Context()))
		case <-time.After(10 * time.Minute):
		}
		release(t, turn)
		release(t, stacktest.Receive(t, next))
	})
}

// 2: a holder that releases at once does not break the chain.
func TestEmptyTurnIsPassedOnAtOnce(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		began := time.Now()
		var all sync.WaitGroup
		var turns atomic.Int64
		for range 4 {
			g := stacktest.GatesOn(t, rdb, gate.Config{})
			for range 25 {
				all.Go(func() {
					for range 4 {
						if err := g.With(t.Context(), "gate", func(context.Context, uint64) error { return nil }); err != nil {
							t.Error(err)
						}
						turns.Add(1)
					}
				})
			}
		}
		all.Wait()
		require.EqualValues(t, 400, turns.Load())
		require.Less(t, time.Since(began), time.Second, "turns must follow one another without a delay")
	})
}

// 3: a waiter that gives up does not consume the turn.
func TestWaiterThatGivesUpCostsNothing(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g, other := stacktest.GatesOn(t, rdb, gate.Config{}), stacktest.GatesOn(t, rdb, gate.Config{})
		turn := acquire(t, g, "gate")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := other.Acquire(ctx, "gate")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		stacktest.Eventually(t, func() bool { return waiting(t, g, "gate") == 0 })
		next := waits(t, g, "gate")
		released := time.Now()
		release(t, turn)
		got := stacktest.Receive(t, next)
		require.Zero(t, time.Since(released))
		release(t, got)
	})
}

// A waiter whose process was killed delays the next one only until its presence
// expires and by one signal.
func TestDeadWaiterCostsLittle(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := stacktest.GatesOn(t, rdb, gate.Config{})
		turn := acquire(t, g, "gate")
		stacktest.Mortal(t, rdb, "gate", "host:1:dead", time.Hour)
		next := waits(t, g, "gate")
		released := time.Now()
		release(t, turn)
		got := stacktest.Receive(t, next)
		require.Less(t, time.Since(released), 2500*time.Millisecond)
		stacktest.Mortal(t, rdb, "gate", "host:1:also dead", time.Hour)
		next = waits(t, g, "gate")
		<-time.After(3 * time.Second)
		released = time.Now()
		release(t, got)
		got = stacktest.Receive(t, next)
		require.Zero(t, time.Since(released), "the expired presence is known by then")
		release(t, got)
	})
}

// The gate is free when the lease of a killed holder expires.
func TestCrashedHolderFreesGate(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := stacktest.GatesOn(t, rdb, gate.Config{})
		began := time.Now()
		stacktest.Mortal(t, rdb, "gate", "host:1:dead", 10*time.Second)
		turn, err := g.Acquire(t.Context(), "gate")
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
		require.Less(t, time.Since(began), 10600*time.Millisecond, "at most one heartbeat later")
		release(t, turn)
	})
}

// cable can be cut; then all commands fail.
type cable struct{ cut atomic.Bool }

func (c *cable) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *cable) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *cable) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c.cut.Load() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

// 4 and 5: a holder that has lost its turn is notified, cannot release the next turn,
// and cannot write past the guard.
func TestStaleHolderIsRefused(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		wire := &cable{}
		cutOff := redis.NewClient(rdb.Options())
		t.Cleanup(func() { require.NoError(t, cutOff.Close()) })
		cutOff.AddHook(wire)
		g, other := stacktest.GatesOn(t, cutOff, gate.Config{}), stacktest.GatesOn(t, rdb, gate.Config{})
		stale := acquire(t, g, "gate")
		require.NoError(t, stale.Guard(t.Context(), "db"))
		wire.cut.Store(true)
		next := waits(t, other, "gate")
		cut := time.Now()
		<-stale.Context().Done()
		require.LessOrEqual(t, time.Since(cut), 10*time.Second, "by the local clock")
		require.ErrorIs(t, context.Cause(stale.Context()), gate.ErrTurnLost)
		turn := stacktest.Receive(t, next)
		require.Greater(t, turn.Fence(), stale.Fence())
		require.NoError(t, turn.Guard(t.Context(), "db"))
		wire.cut.Store(false)
		require.ErrorIs(t, stale.Release(t.Context()), gate.ErrTurnLost)
		require.ErrorIs(t, stale.Guard(t.Context(), "db"), gate.ErrFenceStale)
		<-time.After(time.Minute)
		require.NoError(t, turn.Context().Err(), "the stale release must not end the next turn")
		release(t, turn)
	})
}

// 5: turns that are over leave nothing in the stream.
func TestStreamOfGateIsTrimmed(t *testing.T) {
	t.Parallel()
	rdb, name := redistest.Shared(t), redistest.Name(t)
	g := unhurried(t, rdb)
	for range 50 {
		release(t, acquire(t, g, name))
	}
	require.Zero(t, rdb.XLen(t.Context(), "{gates}:stream:"+name).Val())
}

// 6: the first waiter at a gate gets the turn at once.
func TestFirstWaiterGetsTurnAtOnce(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		began := time.Now()
		release(t, acquire(t, stacktest.GatesOn(t, rdb, gate.Config{}), "gate"))
		require.Zero(t, time.Since(began))
	})
}

// Tokens continue to increase after any deletion and with any clock after a failover.
func TestFencesDoNotStepBack(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, m := redistest.Embedded(t)
		g := stacktest.GatesOn(t, rdb, gate.Config{})
		var last uint64
		grows := func() {
			t.Helper()
			turn := acquire(t, g, "gate")
			require.Greater(t, turn.Fence(), last)
			last = turn.Fence()
			release(t, turn)
		}
		grows()
		require.NoError(t, rdb.Del(t.Context(), "{gates}:stream:gate").Err())
		grows()
		m.SetTime(time.Now().Add(-time.Hour))
		grows()
		require.NoError(t, rdb.Del(t.Context(), "{gates}:state:gate").Err())
		grows()
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		grows() // this process remembers the last token

		forgetful := stacktest.GatesOn(t, rdb, gate.Config{})
		turn := acquire(t, forgetful, "gate")
		require.NoError(t, turn.Guard(t.Context(), "db"))
		guard := rdb.HGetAll(t.Context(), "{gates}:guard:gate").Val()
		release(t, turn)
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		require.NoError(t, rdb.HSet(t.Context(), "{gates}:guard:gate", guard).Err())
		m.SetTime(time.Now().Add(-2 * time.Hour))
		newcomer := stacktest.GatesOn(t, rdb, gate.Config{})
		turn = acquire(t, newcomer, "gate")
		require.Less(t, turn.Fence(), last)
		require.ErrorIs(t, turn.Guard(t.Context(), "db"), gate.ErrFenceRegressed)
		repaired, err := newcomer.Repair(t.Context(), "gate", 0)
		require.NoError(t, err)
		require.Equal(t, 1, repaired.Removed)
		<-turn.Context().Done()
		require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrTurnLost)
		turn = acquire(t, newcomer, "gate")
		require.NoError(t, turn.Guard(t.Context(), "db"))
		release(t, turn)
	})
}

// Waiters continue to wait after their stream was deleted by hand.
func TestWaitersOfDeletedStreamWaitOn(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g, other := stacktest.GatesOn(t, rdb, gate.Config{}), stacktest.GatesOn(t, rdb, gate.Config{})
		turn := acquire(t, g, "gate")
		next := waits(t, other, "gate")
		require.NoError(t, rdb.Del(t.Context(), "{gates}:stream:gate").Err())
		<-time.After(time.Minute)
		require.NoError(t, turn.Context().Err(), "the turn must not end")
		release(t, turn)
		release(t, stacktest.Receive(t, next))
	})
}

// Waiters whose tickets an operator removes with their gate, or repairs away, are notified and
// take new ones at once.
func TestWaitersOfRemovedTicketsWaitOnAtOnce(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, g *gate.Gates, fence uint64) error{
		"removed": func(t *testing.T, g *gate.Gates, _ uint64) error {
			t.Helper()
			_, err := g.Remove(t.Context(), "gate", true)
			return err
		},
		"repaired": func(t *testing.T, g *gate.Gates, fence uint64) error {
			t.Helper()
			_, err := g.Repair(t.Context(), "gate", fence+1e9)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stacktest.Virtually(t, func(t *testing.T) {
				rdb, _ := redistest.Embedded(t)
				g, other := stacktest.GatesOn(t, rdb, gate.Config{}), stacktest.GatesOn(t, rdb, gate.Config{})
				turn := acquire(t, g, "gate")
				next := waits(t, other, "gate")
				<-time.After(time.Millisecond) // an answer of the instant in which a turn began may be older than it
				require.NoError(t, remove(t, g, turn.Fence()))
				synctest.Wait() // without a step of the clock, so before any poll
				require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrTurnLost)
				require.Len(t, next, 1)
				got := <-next
				require.Greater(t, got.Fence(), turn.Fence())
				release(t, got)
			})
		})
	}
}
