package remote_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// dialWithTurns returns a client whose turns outlive their link by ttl.
func dialWithTurns(t testing.TB, address string, ttl time.Duration) *remote.Client {
	t.Helper()
	c, err := remote.Dial(t.Context(), address, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config:  remote.Config{Token: secret},
		TurnTTL: ttl,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// The same calls on local gates and over the network have the same results.
func TestRemoteGatesEqualLocalGates(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	name, ctx := redistest.Name(t), t.Context()
	var last uint64
	for where, gates := range map[string]gate.Locker{"here": n.Gates(), "elsewhere": dial(t, n).Gates()} {
		turn, err := gates.Acquire(ctx, name)
		require.NoError(t, err, where)
		require.Equal(t, name, turn.Gate())
		require.Greater(t, turn.Fence(), last)
		require.True(t, time.Now().Before(turn.Until()))
		require.NoError(t, turn.Guard(ctx, "db"))
		_, err = gates.TryAcquire(ctx, name)
		require.ErrorIs(t, err, gate.ErrHeld)
		if last > 0 {
			require.ErrorIs(t, gates.Guard(ctx, name, "db", last), gate.ErrFenceStale)
		}
		require.ErrorIs(t, gates.Guard(ctx, name, "db", 1<<53-1), gate.ErrFenceUnknown, where)
		require.NoError(t, turn.Guard(ctx, "db"), "a guard call of another process must not block the holder")
		last = turn.Fence()
		waiting, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		_, err = gates.Acquire(waiting, name)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, turn.Context().Err())
		require.NoError(t, turn.Release(ctx))
		require.NoError(t, turn.Release(ctx))
		require.ErrorIs(t, turn.Context().Err(), context.Canceled)
		require.NoError(t, gates.With(ctx, name, func(_ context.Context, fence uint64) error {
			require.Greater(t, fence, last)
			last = fence
			return nil
		}))
		_, err = gates.Acquire(ctx, "")
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
}

func TestOneTurnAtATimeGoesThroughGate(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	name := redistest.Name(t)
	inside, fences := 0, []uint64{}
	var wg sync.WaitGroup
	for _, gates := range []gate.Locker{n.Gates(), dial(t, n).Gates(), dial(t, n).Gates()} {
		for range 5 {
			wg.Go(func() {
				for range 4 {
					err := gates.With(t.Context(), name, func(_ context.Context, fence uint64) error {
						inside++ // the race detector would report two at once
						fences = append(fences, fence)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, 60, inside)
	require.IsIncreasing(t, fences)
}

func TestTurnReleasedAtTheNodeIsLost(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	name := redistest.Name(t)
	turn, err := dial(t, n).Gates().Acquire(t.Context(), name)
	require.NoError(t, err)
	had, err := n.Gates().ForceRelease(t.Context(), name, turn.Fence())
	require.NoError(t, err)
	require.True(t, had)
	receive(t, turn.Context().Done())
	require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrTurnLost)
	require.ErrorIs(t, turn.Release(t.Context()), gate.ErrTurnLost)
}

func TestTurnContinuesOverNewLink(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	link := through(t, n.server.Address())
	c, name := dialWithTurns(t, link.Addr().String(), time.Hour), redistest.Name(t)
	turn, err := c.Gates().Acquire(t.Context(), name)
	require.NoError(t, err)
	for range 3 {
		link.cut()
		eventually(t, func() bool { _, err := c.Stats(t.Context(), n.topic.Name()); return err == nil })
	}
	require.NoError(t, turn.Context().Err())
	_, err = n.Gates().TryAcquire(t.Context(), name)
	require.ErrorIs(t, err, gate.ErrHeld)
	require.NoError(t, turn.Release(t.Context()))
	next, err := n.Gates().Acquire(t.Context(), name)
	require.NoError(t, err)
	require.Greater(t, next.Fence(), turn.Fence())
}

// The order of the two instants is what makes a turn safe without its token.
func TestTurnOverBrokenLinkEndsBeforeNextBegins(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	link := through(t, n.server.Address())
	c, name := dialWithTurns(t, link.Addr().String(), 5*time.Second), redistest.Name(t)
	turn, err := c.Gates().Acquire(t.Context(), name)
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() { // the ticket is removed at once
		_, err := c.Gates().Acquire(t.Context(), name)
		waiting <- err
	}()
	link.dead.Store(true)
	link.cut()
	next, err := n.Gates().Acquire(t.Context(), name)
	began := time.Now()
	require.NoError(t, err)
	require.False(t, began.Before(turn.Until()))
	receive(t, turn.Context().Done())
	require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrTurnLost)
	require.ErrorIs(t, receive(t, waiting), wakebell.ErrUnavailable)
	require.NoError(t, next.Release(t.Context()))
}

func TestClosedClientReleasesItsTurns(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, name := dialWithTurns(t, n.server.Address(), time.Hour), redistest.Name(t)
	turn, err := c.Gates().Acquire(t.Context(), name)
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Gates().Acquire(t.Context(), name)
		waiting <- err
	}()
	c.Close()
	require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrClosed)
	require.Error(t, receive(t, waiting))
	_, err = n.Gates().Acquire(t.Context(), name)
	require.NoError(t, err)
}

// A call that waits at a node that stops waits for the node as for one that starts.
func TestWaitForTurnAtNodeThatStops(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	name := redistest.Name(t)
	c, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config: remote.Config{Token: secret}, DeadLink: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	held, err := n.Gates().Acquire(t.Context(), name)
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Gates().Acquire(t.Context(), name)
		waiting <- err
	}()
	eventually(t, func() bool {
		info, err := n.Gates().Show(t.Context(), name)
		return err == nil && info.Waiting == 1
	})
	require.NoError(t, n.Stop())
	require.ErrorIs(t, context.Cause(held.Context()), gate.ErrClosed)
	require.ErrorIs(t, receive(t, waiting), wakebell.ErrDraining, "it waits for as long as for a link that is down")
}

// An actor of another process acquires a turn by message. When the actor ends, the
// turn is released at once. When its link breaks, the turn is released at once
// without a ttl, and after the ttl otherwise.
func TestActorOfAnotherProcessAcquiresTurn(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	for name, ends := range map[string]func(*stranger, *actor.PID){
		"it ends": func(s *stranger, self *actor.PID) {
			s.batch(s.batchOf(s.gates(), &actor.Terminated{Who: self, Why: actor.TerminatedReason_Stopped}))
		},
		"its process ends": func(s *stranger, _ *actor.PID) { _ = s.conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := redistest.Name(t)
			s := meet(t, n)
			address, got := listening(t)
			s.hello(address).welcomed()
			self := actor.NewPID(address, "clerk")
			s.ask(self, &messages.AcquireTurnRequest{Gate: gate, Request: 3, Place: 9})
			turn, _ := receive(t, got).(*messages.Turn)
			require.EqualValues(t, 3, turn.GetRequest())
			require.EqualValues(t, 9, turn.GetPlace())
			s.ask(self, &messages.ExtendTurnRequest{Gate: gate, Place: 9, Fence: turn.GetFence(), Request: 4})
			extended, _ := receive(t, got).(*messages.ExtendTurnResponse)
			require.Positive(t, extended.GetGood().AsDuration())
			ends(s, self)
			_, err := n.Gates().Acquire(t.Context(), gate)
			require.NoError(t, err)
		})
	}
}

func TestInvalidRequestsForTurnsAreRefused(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	s := meet(t, n)
	address, got := listening(t)
	s.hello(address).welcomed()
	self := actor.NewPID(address, "clerk")
	for _, m := range []*messages.AcquireTurnRequest{
		{},
		{Gate: string(make([]byte, 513))},
		{Gate: "g", Ttl: durationpb.New(time.Millisecond)},
		{Gate: "g", Ttl: durationpb.New(-1)},
	} {
		s.ask(self, m)
		refused, _ := receive(t, got).(*messages.TurnRefused)
		require.Equal(t, messages.Code_CODE_INVALID, refused.GetCode())
	}
	gate := redistest.Name(t)
	for place := range uint64(1001) {
		s.ask(self, &messages.AcquireTurnRequest{Gate: gate, Place: place})
	}
	for {
		if refused, ok := receive(t, got).(*messages.TurnRefused); ok {
			require.Equal(t, messages.Code_CODE_OVERLOADED, refused.GetCode())
			break
		}
	}
	// A session cannot release the turns of others, even if it sends their ids.
	turn, err := dial(t, n).Gates().Acquire(t.Context(), gate+"other")
	require.NoError(t, err)
	s.ask(self, &messages.ReleaseTurnRequest{Gate: gate + "other", Fence: turn.Fence()})
	for {
		if released, ok := receive(t, got).(*messages.ReleaseTurnResponse); ok {
			require.NotEmpty(t, released.GetReason())
			break
		}
	}
	require.NoError(t, turn.Context().Err())
}
