package gates_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// asker is an actor that acquires turns and forwards the messages that it receives.
type asker struct {
	gates    *actor.PID
	received chan any
}

func (a *asker) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.AcquireTurnRequest, *messages.ReleaseTurnRequest:
		c.Request(a.gates, m)
	case *messages.Turn, *messages.TurnRefused, *messages.TurnLost, *messages.ReleaseTurnResponse:
		a.received <- m
	}
}

// gatesOf starts a System and spawns askers beside it.
func gatesOf(t *testing.T, askers int) (*gate.Gates, *actor.ActorSystem, []*actor.PID, []chan any) {
	t.Helper()
	system := stacktest.ActorSystem()
	sys, err := wakebell.New(system, unhurriedConnection(t, redistest.Shared(t)), wakebell.Config{Gates: gate.Config{LeaseTTL: 30 * time.Second}})
	require.NoError(t, err)
	_, err = sys.Gates().Acquire(t.Context(), "x")
	require.ErrorIs(t, err, gate.ErrClosed)
	stacktest.Launch(t, sys)
	var pids []*actor.PID
	var received []chan any
	for range askers {
		a := &asker{sys.Gates().PID(), make(chan any, 10)}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
		t.Cleanup(func() { _ = system.Root.StopFuture(pid).Wait() }) // it may have stopped already
		pids, received = append(pids, pid), append(received, a.received)
	}
	return sys.Gates(), system, pids, received
}

// A client repeats an AcquireTurnRequest because its answer may be lost between
// processes.
func TestRepeatedRequestReceivesSameTurn(t *testing.T) {
	t.Parallel()
	gates, system, pids, received := gatesOf(t, 2)
	name := redistest.Name(t)
	ask := func(who int, request uint64) {
		system.Root.RequestWithCustomSender(gates.PID(), &messages.AcquireTurnRequest{
			Gate: name, Request: request, Place: 5, Ttl: durationpb.New(time.Hour),
		}, pids[who])
	}
	ask(0, 1)
	first := stacktest.Receive(t, received[0]).(*messages.Turn)
	ask(0, 2)
	again := stacktest.Receive(t, received[0]).(*messages.Turn)
	require.EqualValues(t, 2, again.GetRequest())
	require.Equal(t, first.GetFence(), again.GetFence(), "it is the same turn")

	ask(1, 3)
	ask(1, 4)
	stacktest.Eventually(t, func() bool { return waiting(t, gates, name) == 1 }, "it is one place")
	system.Root.Send(pids[0], &messages.ReleaseTurnRequest{Gate: name, Place: 5, Fence: first.GetFence()})
	second := stacktest.Receive(t, received[1]).(*messages.Turn)
	require.EqualValues(t, 4, second.GetRequest(), "the newest request is answered")
	require.Empty(t, received[1])
}

func TestActorsTakeTurns(t *testing.T) {
	t.Parallel()
	gates, system, pids, received := gatesOf(t, 2)
	name := redistest.Name(t)
	system.Root.Send(pids[0], &messages.AcquireTurnRequest{Gate: name})
	first := stacktest.Receive(t, received[0]).(*messages.Turn)
	require.Equal(t, name, first.GetGate())

	system.Root.Send(pids[0], &messages.AcquireTurnRequest{Gate: name})
	require.Contains(t, stacktest.Receive(t, received[0]).(*messages.TurnRefused).GetReason(), "already")
	system.Root.Send(pids[1], &messages.AcquireTurnRequest{Gate: name, Try: true})
	require.Equal(t, gate.ErrHeld.Error(), stacktest.Receive(t, received[1]).(*messages.TurnRefused).GetReason())
	system.Root.Send(pids[1], &messages.AcquireTurnRequest{Gate: name, Timeout: durationpb.New(20 * time.Millisecond)})
	require.Contains(t, stacktest.Receive(t, received[1]).(*messages.TurnRefused).GetReason(), "within")
	stacktest.Eventually(t, func() bool { return waiting(t, gates, name) == 0 })
	answer, err := system.Root.RequestFuture(gates.PID(), &messages.AcquireTurnRequest{Gate: name}, stacktest.Patience).Result()
	require.NoError(t, err)
	require.Contains(t, answer.(*messages.TurnRefused).GetReason(), "future")

	system.Root.Send(pids[1], &messages.AcquireTurnRequest{Gate: name})
	stacktest.Eventually(t, func() bool { return waiting(t, gates, name) == 1 })
	system.Root.Send(pids[0], &messages.ReleaseTurnRequest{Gate: name, Fence: 1})
	require.Equal(t, gate.ErrTurnLost.Error(), stacktest.Receive(t, received[0]).(*messages.ReleaseTurnResponse).GetReason())
	system.Root.Send(pids[0], &messages.ReleaseTurnRequest{Gate: name, Fence: first.GetFence()})
	require.Empty(t, stacktest.Receive(t, received[0]).(*messages.ReleaseTurnResponse).GetReason())
	second := stacktest.Receive(t, received[1]).(*messages.Turn)
	require.Greater(t, second.GetFence(), first.GetFence())

	stacktest.Eventually(t, func() bool { // Redis may receive the release later
		info, err := gates.Show(t.Context(), name)
		return err == nil && info.Holder.Fence == second.GetFence()
	})
	had, err := gates.ForceRelease(t.Context(), name, second.GetFence())
	require.NoError(t, err)
	require.True(t, had)
	require.Equal(t, second.GetFence(), stacktest.Receive(t, received[1]).(*messages.TurnLost).GetFence())
}

// A turn or a ticket of an actor is released when the actor stops.
func TestTurnOfStoppedActorIsReleased(t *testing.T) {
	t.Parallel()
	gates, system, pids, received := gatesOf(t, 2)
	name := redistest.Name(t)
	system.Root.Send(pids[0], &messages.AcquireTurnRequest{Gate: name})
	stacktest.Receive(t, received[0])
	system.Root.Send(pids[1], &messages.AcquireTurnRequest{Gate: name})
	stacktest.Eventually(t, func() bool { return waiting(t, gates, name) == 1 })
	require.NoError(t, system.Root.StopFuture(pids[1]).Wait())
	stacktest.Eventually(t, func() bool { return waiting(t, gates, name) == 0 })
	next := waits(t, gates, name)
	require.NoError(t, system.Root.StopFuture(pids[0]).Wait())
	release(t, stacktest.Receive(t, next))
}

// Stop releases the turns of a System, so that no waiter has to wait for a lease to
// expire.
func TestStopReleasesTurns(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{}))
		turn := acquire(t, sys.Gates(), "gate")
		other := stacktest.GatesOn(t, rdb, gate.Config{})
		next := waits(t, other, "gate")
		own := waits(t, sys.Gates(), "gate")
		began := time.Now()
		require.NoError(t, sys.Stop())
		got := stacktest.Receive(t, next)
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrClosed)
		require.ErrorIs(t, turn.Release(t.Context()), gate.ErrTurnLost)
		require.Empty(t, own)
		_, err := sys.Gates().Acquire(t.Context(), "gate")
		require.ErrorIs(t, err, gate.ErrClosed)
		release(t, got)
	})
}

// When a System's process is killed, its turn ends when the lease expires.
func TestTurnOfKilledSystemEndsWithItsLease(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{}))
		turn := acquire(t, sys.Gates(), "gate")
		other := stacktest.GatesOn(t, rdb, gate.Config{})
		next := waits(t, other, "gate")
		began := time.Now()
		require.NoError(t, testhook.Kill(sys))
		<-turn.Context().Done()
		got := <-next
		require.Greater(t, time.Since(began), 6*time.Second)
		require.LessOrEqual(t, time.Since(began), 10600*time.Millisecond)
		release(t, got)
	})
}

func TestWith(t *testing.T) {
	t.Parallel()
	g, name := unhurried(t, redistest.Shared(t)), redistest.Name(t)
	require.ErrorIs(t, g.With(t.Context(), name, func(context.Context, uint64) error { return context.Canceled }), context.Canceled)
	require.PanicsWithValue(t, "as the test wants it", func() {
		_ = g.With(t.Context(), name, func(context.Context, uint64) error { panic("as the test wants it") })
	})
	err := g.With(t.Context(), name, func(ctx context.Context, fence uint64) error {
		had, err := g.ForceRelease(t.Context(), name, fence)
		require.NoError(t, err)
		require.True(t, had)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, gate.ErrTurnLost)
	require.Zero(t, waiting(t, g, name))
}

func TestGatesAreValidated(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	for want, s := range map[string]opened.GateSwitches{
		"LeaseTTL":    {},
		"SignalTTL":   {SignalTTL: time.Hour},
		"PresenceTTL": {PresenceTTL: time.Millisecond},
	} {
		conn, cfg := conntest.Switched(t, rdb, connection.Config{}, opened.Switches{Gates: s}), gate.Config{LeaseTTL: time.Millisecond}
		_, err := gate.New(conn, cfg)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, want)
		_, err = wakebell.New(stacktest.ActorSystem(), conn, wakebell.Config{Gates: cfg})
		require.ErrorContains(t, err, want)
	}
	_, err := connection.New(rdb, connection.Config{GateKeys: wakebelltype.GateKeys{Stream: "a", State: "a"}})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "both")
	_, err = gate.New(nil, gate.Config{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	g := stacktest.GatesOn(t, rdb, gate.Config{})
	_, err = g.Acquire(t.Context(), "")
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorIs(t, g.Guard(t.Context(), "gate", "", 1), wakebell.ErrInvalid)
	require.ErrorIs(t, g.Guard(t.Context(), "gate", "db", 0), wakebell.ErrInvalid)
}
