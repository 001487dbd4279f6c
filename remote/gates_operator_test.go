package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// gatesOf returns the gates of a node, in its process and over the network.
func gatesOf(t *testing.T, n *node) (here, elsewhere gate.Operator) {
	t.Helper()
	return n.Gates(), dial(t, n).Gates()
}

func TestGateIsShownSameOverNetwork(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	here, elsewhere := gatesOf(t, n)
	name, ctx := redistest.Name(t), t.Context()
	same := func() wakebelltype.GateInfo {
		t.Helper()
		want, err := here.Show(ctx, name)
		require.NoError(t, err)
		got, err := elsewhere.Show(ctx, name)
		require.NoError(t, err)
		require.WithinDuration(t, want.Now, got.Now, time.Minute)
		got.Now, got.Until = want.Now, want.Until // a lease may be extended in between
		require.Equal(t, want, got)
		return got
	}
	require.Zero(t, same().Holder, "never used")

	turn, err := n.Gates().Acquire(ctx, name)
	require.NoError(t, err)
	require.NoError(t, turn.Guard(ctx, "db"))
	require.NoError(t, turn.Guard(ctx, "\xff"))
	waiting, leave := context.WithCancel(ctx)
	defer leave()
	came, other := make(chan error, 1), dial(t, n).Gates()
	go func() {
		_, err := other.Acquire(waiting, name)
		came <- err
	}()
	eventually(t, func() bool {
		info, err := elsewhere.Show(ctx, name)
		return err == nil && info.Waiting == 1
	})
	info, err := elsewhere.Show(ctx, name)
	require.NoError(t, err)
	require.Equal(t, turn.Fence(), info.Holder.Fence)
	require.True(t, info.Confirmed)
	require.Len(t, info.Waiters, 1)
	require.Equal(t, map[string]uint64{"db": turn.Fence(), "\uFFFD": turn.Fence()}, info.Guard)
	require.WithinRange(t, info.Until, info.Now, info.Now.Add(time.Minute))
	found := 0
	for g, err := range elsewhere.List(ctx, wakebelltype.Page{}) {
		require.NoError(t, err)
		if g.Name == name {
			found++
			require.Equal(t, turn.Fence(), g.Holder.Fence)
			require.Equal(t, 1, g.Waiting)
			require.Empty(t, g.Waiters)
		}
	}
	require.Equal(t, 1, found)
	leave()
	require.ErrorIs(t, receive(t, came), context.Canceled)
}

func TestGatesAreReleasedAndRepairedOverNetwork(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	here, elsewhere := gatesOf(t, n)
	ctx := t.Context()
	for where, of := range map[string]gate.Operator{"here": here, "elsewhere": elsewhere} {
		name := redistest.Name(t)
		turn, err := n.Gates().Acquire(ctx, name)
		require.NoError(t, err)
		for _, had := range []bool{true, false} {
			released, err := of.ForceRelease(ctx, name, turn.Fence())
			require.NoError(t, err, where)
			require.Equal(t, had, released, where)
		}
		require.ErrorIs(t, turn.Release(ctx), gate.ErrTurnLost)

		floor := turn.Fence() + 1000
		repaired, err := of.Repair(ctx, name, floor)
		require.NoError(t, err, where)
		require.Equal(t, wakebelltype.GateRepaired{Before: turn.Fence(), After: floor}, repaired, where)

		lifted, err := n.Gates().Acquire(ctx, name)
		require.NoError(t, err)
		_, err = of.Remove(ctx, name, false)
		require.ErrorIs(t, err, gate.ErrHeld, where)
		for _, existed := range []bool{true, false} {
			got, err := of.Remove(ctx, name, true)
			require.NoError(t, err, where)
			require.Equal(t, existed, got, where)
		}
		<-lifted.Context().Done()
		require.ErrorIs(t, context.Cause(lifted.Context()), gate.ErrTurnLost)

		_, err = of.Show(ctx, "")
		require.ErrorIs(t, err, wakebell.ErrInvalid, where)
		_, err = of.ForceRelease(ctx, "", 1)
		require.ErrorIs(t, err, wakebell.ErrInvalid, where)
		_, err = of.Repair(ctx, name, 1<<53)
		require.ErrorIs(t, err, wakebell.ErrInvalid, where)
	}
}
