package gates_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// unhurried returns Gates on a real Redis in tests that need turns in order and
// without losses: a machine that stalls for a few seconds must not end a lease or a
// presence. Its presence is short enough to share a Redis with Gates of the defaults.
func unhurried(t testing.TB, rdb redis.UniversalClient) *gate.Gates {
	t.Helper()
	return stacktest.GatesWith(t, unhurriedConnection(t, rdb), gate.Config{LeaseTTL: 30 * time.Second})
}

func unhurriedConnection(t testing.TB, rdb redis.UniversalClient) *connection.Connection {
	t.Helper()
	return conntest.Switched(t, rdb, connection.Config{}, opened.Switches{Gates: opened.GateSwitches{SignalTTL: 20 * time.Second, PresenceTTL: 20 * time.Second}})
}

func acquire(t testing.TB, g *gate.Gates, name string) gate.Turn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stacktest.Patience)
	defer cancel()
	turn, err := g.Acquire(ctx, name)
	require.NoError(t, err)
	return turn
}

func release(t testing.TB, turn gate.Turn) {
	t.Helper()
	require.NoError(t, turn.Release(t.Context()))
}

// waits starts to wait for a gate and returns when it has a ticket.
func waits(t testing.TB, g *gate.Gates, name string) <-chan gate.Turn {
	t.Helper()
	before := waiting(t, g, name)
	got := make(chan gate.Turn, 1)
	go func() {
		if turn, err := g.Acquire(t.Context(), name); err == nil {
			got <- turn
		}
	}()
	stacktest.Eventually(t, func() bool { return waiting(t, g, name) == before+1 })
	return got
}

func waiting(t testing.TB, g *gate.Gates, name string) int {
	t.Helper()
	info, err := g.Show(t.Context(), name)
	require.NoError(t, err)
	return info.Waiting
}

func TestTurnsAtAGate(t *testing.T) {
	t.Parallel()
	rdb, name := redistest.Shared(t), redistest.Name(t)
	one, two := unhurried(t, rdb), unhurried(t, rdb)
	first := acquire(t, one, name)
	_, err := two.TryAcquire(t.Context(), name)
	require.ErrorIs(t, err, gate.ErrHeld)
	second := waits(t, two, name)
	third := waits(t, one, name)
	_, err = one.TryAcquire(t.Context(), name)
	require.ErrorIs(t, err, gate.ErrHeld)
	release(t, first)
	require.ErrorIs(t, context.Cause(first.Context()), context.Canceled)
	release(t, first) // again
	turn := stacktest.Receive(t, second)
	require.Greater(t, turn.Fence(), first.Fence())
	require.Equal(t, name, turn.Gate())
	require.Positive(t, turn.Waited())
	require.NoError(t, turn.Context().Err())
	release(t, turn)
	last := stacktest.Receive(t, third)
	require.Greater(t, last.Fence(), turn.Fence())
	release(t, last)
	turn, err = two.TryAcquire(t.Context(), name)
	require.NoError(t, err)
	release(t, turn)
	require.Zero(t, waiting(t, one, name))
}

func TestTurnOutlivesContextOfItsAcquire(t *testing.T) {
	t.Parallel()
	g, name := unhurried(t, redistest.Shared(t)), redistest.Name(t)
	type key struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "kept"), time.Minute)
	turn, err := g.Acquire(ctx, name)
	require.NoError(t, err)
	cancel()
	require.NoError(t, turn.Context().Err())
	require.Equal(t, "kept", turn.Context().Value(key{}))
	release(t, turn)
	_, err = g.Acquire(ctx, name)
	require.ErrorIs(t, err, context.Canceled)
}

// A user without rights on the channels gets turns by polling.
func TestGatesWithoutSignals(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "deaf", "reset", "on", ">secret", "+@all", "~{gates}:*").Err())
	deaf := func(o *redis.Options) { o.Username, o.Password = "deaf", "secret" }
	g, other := stacktest.GatesOn(t, server.Client(t, deaf), gate.Config{}), stacktest.GatesOn(t, server.Client(t, deaf), gate.Config{})
	for range 3 {
		turn := acquire(t, g, "gate")
		next := waits(t, other, "gate")
		release(t, turn)
		release(t, stacktest.Receive(t, next))
	}
}
