package gates_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// inLine starts a waiter at each of these Gates, one behind the other. It returns the
// indexes of those that got turns, in order, and their tokens.
func inLine(t *testing.T, name string, use func(g *gate.Gates, fence uint64) error, line ...*gate.Gates) (order func() []int, fences func() []uint64) {
	t.Helper()
	var mu sync.Mutex
	var who []int
	var tokens []uint64
	var all sync.WaitGroup
	for i, g := range line {
		before := waiting(t, g, name)
		all.Go(func() {
			err := g.With(t.Context(), name, func(_ context.Context, fence uint64) error {
				mu.Lock()
				defer mu.Unlock()
				who, tokens = append(who, i), append(tokens, fence)
				return use(g, fence)
			})
			if err != nil {
				t.Error(err)
			}
		})
		stacktest.Eventually(t, func() bool { return waiting(t, g, name) == before+1 })
	}
	return func() []int { all.Wait(); return who }, func() []uint64 { return tokens }
}

// A process passes a turn on to its own next waiter only if no waiter of another
// process is in between.
func TestPassingOnKeepsOrder(t *testing.T) {
	t.Parallel()
	rdb, name := redistest.Shared(t), redistest.Name(t)
	a, b := unhurried(t, rdb), unhurried(t, rdb)
	first := acquire(t, a, name)
	guarded := func(g *gate.Gates, fence uint64) error { return g.Guard(t.Context(), name, "resource", fence) }
	order, fences := inLine(t, name, guarded, a, a, a, b, a, b, b, a, a)
	release(t, first)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, order())
	require.True(t, slices.IsSorted(fences()))
	stacktest.Eventually(t, func() bool { // passed turns are released too
		info, err := b.Show(t.Context(), name)
		return err == nil && info.Holder.Fence == 0 && info.Waiting == 0
	})
}

// While the lease lasts, a process passes turns on to its own waiters without waiting
// for Redis, which it notifies later.
func TestTurnsArePassedOnWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := unhurried(t, server.Client(t))
	first := acquire(t, g, "gate")
	order, _ := inLine(t, "gate", func(*gate.Gates, uint64) error { return nil }, slices.Repeat([]*gate.Gates{g}, 50)...)
	_, err := g.TryAcquire(t.Context(), "gate") // its answer follows those to the fifty
	require.ErrorIs(t, err, gate.ErrHeld)
	server.Pause()
	release(t, first)
	require.Len(t, order(), 50)
	server.Resume()
	stacktest.Eventually(t, func() bool {
		info, err := g.Show(t.Context(), "gate")
		return err == nil && info.Holder.Fence == 0
	})
	require.Zero(t, waiting(t, g, "gate"))
}

// A turn that was passed on is extended while it is held, and is lost when Redis has
// no record of it.
func TestTurnThatWasPassedOn(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, server := redistest.Embedded(t)
		g, other := stacktest.GatesOn(t, rdb, gate.Config{}), stacktest.GatesOn(t, rdb, gate.Config{})
		first := acquire(t, g, "gate")
		second, third := waits(t, g, "gate"), waits(t, other, "gate")
		release(t, first)
		turn := stacktest.Receive(t, second)
		select {
		case <-third:
			require.Fail(t, "the gate has two holders")
		case <-turn.Context().Done():
			require.Fail(t, "the turn was lost", context.Cause(turn.Context()))
		case <-time.After(10 * time.Minute):
		}
		server.FlushAll()
		<-turn.Context().Done()
		require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrTurnLost)
		require.ErrorIs(t, turn.Release(t.Context()), gate.ErrTurnLost)
		release(t, stacktest.Receive(t, third))
	})
}

// A waiter that has lost its ticket takes a new one, behind the tickets of its
// process.
func TestPassingOnAfterLostTicket(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g, other := stacktest.GatesOn(t, rdb, gate.Config{}), stacktest.GatesOn(t, rdb, gate.Config{})
		first := acquire(t, other, "gate")
		order, fences := inLine(t, "gate", func(*gate.Gates, uint64) error { return nil }, g, g, g)
		info, err := g.Show(t.Context(), "gate")
		require.NoError(t, err)
		lost := fmt.Sprintf("%d-0", info.Waiters[0].Fence)
		require.NoError(t, rdb.XDel(t.Context(), "{gates}:stream:gate", lost).Err())
		<-time.After(time.Minute) // until it has extended its tickets
		require.Equal(t, 3, waiting(t, g, "gate"))
		release(t, first)
		require.Equal(t, []int{1, 2, 0}, order())
		require.True(t, slices.IsSorted(fences()))
	})
}
