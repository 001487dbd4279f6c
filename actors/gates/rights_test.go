package gates

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
)

func TestTurnWithoutRightEndsWithItsLease(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, clerks := startClerks(t, "mallory", "honest")
		mallory, honest := clerks[0], clerks[1]
		mallory.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 1})
		<-time.After(time.Second)
		gets[*messages.Turn](t, mallory)
		mallory.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 2})
		honest.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 1})
		<-time.After(5 * testLease)
		require.Empty(t, mallory.got, "the turn is extended")

		g.system.Root.Send(g.pid, RightsChanged{Permits: func(principal, _ string) bool { return principal != "mallory" }})
		synctest.Wait()
		refused := gets[*messages.TurnRefused](t, mallory)
		require.Equal(t, messages.Code_CODE_FORBIDDEN, refused.GetCode())
		require.EqualValues(t, 2, refused.GetPlace(), "it waits no longer")
		require.Empty(t, mallory.got, "its owner counts on the lease")
		require.Empty(t, honest.got)
		<-time.After(2 * testLease)
		require.EqualValues(t, 1, gets[*messages.TurnLost](t, mallory).GetPlace())
		turn := gets[*messages.Turn](t, honest)
		<-time.After(5 * testLease)
		require.Empty(t, honest.got, "the turn is extended")

		mallory.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 3}) // it was on its way when the rights changed
		require.Equal(t, messages.Code_CODE_FORBIDDEN, gets[*messages.TurnRefused](t, mallory).GetCode())
		mallory.send(&messages.ReleaseTurnRequest{Gate: "gate", Place: 1, Fence: turn.GetFence()})
		require.NotEmpty(t, gets[*messages.ReleaseTurnResponse](t, mallory).GetReason(), "the turn is not its own")
		require.Empty(t, honest.got)

		g.system.Root.Send(g.pid, RightsChanged{Permits: func(string, string) bool { return false }})
		honest.send(&messages.ReleaseTurnRequest{Gate: "gate", Place: 1, Fence: turn.GetFence()})
		<-time.After(time.Second)
		require.Empty(t, gets[*messages.ReleaseTurnResponse](t, honest).GetReason())
		ours, err := g.Acquire(t.Context(), "gate", false)
		require.NoError(t, err, "the rights are of other processes")
		<-time.After(5 * testLease)
		require.NoError(t, ours.Context().Err())
		require.NoError(t, g.Close())
	})
}

// A request that was permitted before the change arrives after a crash of the actor.
func TestChangedRightsOutliveACrash(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, clerks := startClerks(t, "mallory", "honest")
		mallory, honest := clerks[0], clerks[1]
		g.system.Root.Send(g.pid, RightsChanged{Permits: func(principal, _ string) bool { return principal != "mallory" }})
		g.system.Root.Send(g.pid, acquire{}) // it panics, since it has no waiter
		<-time.After(time.Minute)
		mallory.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 1})
		<-time.After(time.Second)
		require.Equal(t, messages.Code_CODE_FORBIDDEN, gets[*messages.TurnRefused](t, mallory).GetCode())
		honest.send(&messages.AcquireTurnRequest{Gate: "gate", Place: 1})
		<-time.After(time.Second)
		gets[*messages.Turn](t, honest)
		require.NoError(t, g.Close())
	})
}
