package gates

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages/gate"
)

// TestGatesActorCrashes checks that a crash of the gates actor ends its turns,
// and that the restarted actor identifies itself to the store as another process.
func TestGatesActorCrashes(t *testing.T) {
	t.Parallel()
	store := &actortest.OpenGate{Processes: map[string]bool{}}
	var processes atomic.Int64
	g, err := Start(actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	})), "gates", Config{
		Store: store, Terms: gate.Terms{Lease: time.Hour, Signal: time.Hour, Presence: time.Hour},
		Logger:  slog.New(slog.DiscardHandler),
		Process: func() string { return strconv.FormatInt(processes.Add(1), 10) },
	})
	require.NoError(t, err)
	turn, err := g.Acquire(t.Context(), "gate", false)
	require.NoError(t, err)

	g.system.Root.Send(g.pid, acquire{}) // it panics, since it has no waiter
	<-turn.Context().Done()
	require.ErrorIs(t, context.Cause(turn.Context()), ErrTurnLost)
	require.ErrorContains(t, context.Cause(turn.Context()), "crashed")

	next, err := g.Acquire(t.Context(), "gate", false)
	require.NoError(t, err)
	require.Greater(t, next.Fence, turn.Fence)
	require.ErrorIs(t, turn.Release(t.Context()), ErrTurnLost)
	require.NoError(t, next.Context().Err())
	require.NoError(t, next.Release(t.Context()))
	require.NoError(t, g.Close())
	require.Equal(t, map[string]bool{"1": true, "2": true}, store.Processes)
}
