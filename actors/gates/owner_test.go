package gates

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/gate"
)

// clerk is an actor of a principal; it passes on what the gates send.
type clerk struct {
	gates *Gates
	pid   *actor.PID
	of    string
	got   chan any
}

func newClerk(t *testing.T, g *Gates, of string) *clerk {
	t.Helper()
	k := &clerk{gates: g, of: of, got: make(chan any, 10)}
	var err error
	k.pid, err = g.system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *messages.Turn, *messages.TurnRefused, *messages.TurnLost, *messages.ExtendTurnResponse, *messages.ReleaseTurnResponse:
			k.got <- m
		}
	}), of)
	require.NoError(t, err)
	return k
}

func (k *clerk) send(message any) {
	k.gates.system.Root.Send(k.gates.pid, &actor.MessageEnvelope{
		Header: map[string]string{messages.PrincipalHeader: k.of}, Message: message, Sender: k.pid,
	})
	synctest.Wait()
}

// gets requires that a message of a type has arrived, and returns it.
func gets[M any](t *testing.T, k *clerk) M {
	t.Helper()
	require.NotEmpty(t, k.got)
	m, ok := (<-k.got).(M)
	require.True(t, ok, "%T", m)
	return m
}

const testLease = 10 * time.Second

func startClerks(t *testing.T, of ...string) (g *Gates, clerks []*clerk) {
	t.Helper()
	g, err := Start(actortest.QuietSystem(), "gates", Config{
		Store: &fifoStore{}, Terms: gate.Terms{Lease: testLease, Signal: testLease, Presence: time.Minute},
		Logger: actortest.DiscardLogger, Process: func() string { return "process" },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() }) // a test that fails ends too
	for _, name := range of {
		clerks = append(clerks, newClerk(t, g, name))
	}
	return g, clerks
}

// A link that breaks ends the watch of an actor. Its next message begins another one.
func TestActorIsWatchedAgainAfterItsLinkBroke(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(fence uint64) any{
		"extends": func(fence uint64) any {
			return &messages.ExtendTurnRequest{Gate: "gate", Place: 9, Fence: fence}
		},
		"acquires again": func(uint64) any {
			return &messages.AcquireTurnRequest{Gate: "gate", Place: 9, Ttl: durationpb.New(maxTurnTTL)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				g, clerks := startClerks(t, "clerk")
				k := clerks[0]
				k.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 9, Ttl: durationpb.New(maxTurnTTL)})
				<-time.After(time.Second)
				turn := gets[*messages.Turn](t, k)
				ref, ok := g.system.ProcessRegistry.GetLocal(g.pid.GetId())
				require.True(t, ok)
				ref.SendSystemMessage(g.pid, &actor.Terminated{Who: k.pid, Why: actor.TerminatedReason_AddressTerminated})
				synctest.Wait()
				k.send(back(turn.GetFence()))
				require.Len(t, k.got, 1, "the turn continues")
				require.NoError(t, g.system.Root.StopFuture(k.pid).Wait())
				ctx, end := context.WithTimeout(t.Context(), time.Minute)
				defer end()
				_, err := g.Acquire(ctx, "gate", false)
				require.NoError(t, err, "the turn of an actor that has ended is released at once")
				require.NoError(t, g.Close())
			})
		})
	}
}

// An address passes to a process of another principal, which names its actor as the first one did:
// it has neither the turn of the first one nor its places, and what it takes is its own.
func TestAddressOfAnotherPrincipalHasNotItsTurns(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, clerks := startClerks(t, "first")
		first := clerks[0]
		other := &clerk{gates: g, of: "other", pid: first.pid, got: first.got}
		first.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 1, Ttl: durationpb.New(time.Minute)})
		<-time.After(time.Second)
		turn := gets[*messages.Turn](t, first)
		for _, fence := range []uint64{0, turn.GetFence()} {
			other.send(&messages.ReleaseTurnRequest{Gate: "gate", Place: 1, Fence: fence})
			require.NotEmpty(t, gets[*messages.ReleaseTurnResponse](t, other).GetReason())
			other.send(&messages.ExtendTurnRequest{Gate: "gate", Place: 1, Fence: fence})
			require.Nil(t, gets[*messages.ExtendTurnResponse](t, other).GetGood())
		}
		other.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 1, Ttl: durationpb.New(time.Minute)})
		require.Empty(t, other.got, "it waits: the place of the first one is not its own")
		first.send(&messages.ReleaseTurnRequest{Gate: "gate", Place: 1, Fence: turn.GetFence()})
		<-time.After(time.Second)
		require.Empty(t, gets[*messages.ReleaseTurnResponse](t, first).GetReason())
		require.Greater(t, gets[*messages.Turn](t, other).GetFence(), turn.GetFence())

		first.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 1})
		require.Empty(t, first.got, "it waits")
		require.NoError(t, g.system.Root.StopFuture(first.pid).Wait())
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		_, err := g.Acquire(ctx, "gate", false)
		require.NoError(t, err, "the end of the actor releases the turn and the place")
		require.NoError(t, g.Close())
	})
}
