package actors

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/gate"
)

// openGate is a store whose gates let everybody through, at least once.
type openGate struct {
	mu        sync.Mutex
	last      gate.Ticket
	processes map[string]bool
}

func (s *openGate) Exchange(_ context.Context, r *gate.Request) (*gate.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes[r.Process] = true
	reply := &gate.Reply{Now: time.Now(), Remaining: r.Lease}
	for _, op := range r.Ops {
		done := gate.Done{Had: op.Kind == gate.Give}
		if !done.Had {
			s.last++
			done.Ticket, reply.Held = s.last, s.last
		}
		reply.Done = append(reply.Done, done)
	}
	return reply, nil
}

func (s *openGate) Beat(_ context.Context, b *gate.Beat) (*gate.Pulse, error) {
	return &gate.Pulse{Now: time.Now(), Lost: make([]bool, len(b.Turns))}, nil
}

func (s *openGate) Places(_ context.Context, tickets []gate.Held) ([]gate.Place, error) {
	return make([]gate.Place, len(tickets)), nil
}

func (s *openGate) Listen(ctx context.Context, _ string, _ func(), _ func(gate.Signal)) error {
	<-ctx.Done()
	return ctx.Err()
}

// A crash of the gates actor ends what it had, and it goes on as another
// process.
func TestTheGatesActorCrashes(t *testing.T) {
	t.Parallel()
	store := &openGate{processes: map[string]bool{}}
	var lives atomic.Int64
	g, err := StartGates(actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	})), "gates", GatesConfig{
		Store: store, Terms: gate.Terms{Lease: time.Hour, Signal: time.Hour, Presence: time.Hour},
		Logger:  slog.New(slog.DiscardHandler),
		Process: func() string { return strconv.FormatInt(lives.Add(1), 10) },
	})
	require.NoError(t, err)
	turn, err := g.Acquire(t.Context(), "gate", false)
	require.NoError(t, err)

	g.system.Root.Send(g.pid, acquire{}) // of nobody
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
	require.Equal(t, map[string]bool{"1": true, "2": true}, store.processes)
}
