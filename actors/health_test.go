package actors

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
)

// TestHealthOfSilentPoller checks that Health reports for how long a poller has not
// answered, and does not wait for its answer.
func TestHealthOfSilentPoller(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		free := make(chan struct{})
		var stuck atomic.Bool
		block := actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
				if stuck.Load() {
					<-free
				}
				next(c, env)
			}
		})
		rt, err := Start(actortest.QuietSystem(), Config{
			Name: "a", Topics: []poller.Topic{topicOn(actortest.NewMemorySource(1), 1, acks)}, Logger: actortest.DiscardLogger,
			props: []actor.PropsOption{block},
		})
		require.NoError(t, err)
		ask := func() Health {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return rt.Health(ctx)
		}
		<-time.After(time.Second)
		v := ask()
		require.Zero(t, v.Silent)
		require.Len(t, v.Pollers, 1)
		require.Zero(t, v.Pollers[0].Silent)
		require.False(t, v.Pollers[0].LastExchange.IsZero())

		stuck.Store(true)
		<-time.After(time.Minute)
		began := time.Now()
		v = ask()
		require.Equal(t, time.Second, time.Since(began), "Health returns when its context ends")
		require.Zero(t, v.Silent, "the supervisor answers")
		require.NotZero(t, v.Pollers[0].Silent)
		require.Less(t, v.Pollers[0].Silent, StuckAfter, "the silence is counted from the first question without an answer")
		<-time.After(StuckAfter)
		require.GreaterOrEqual(t, ask().Pollers[0].Silent, StuckAfter)

		stuck.Store(false)
		close(free)
		<-time.After(time.Second)
		require.Zero(t, ask().Pollers[0].Silent)
		require.NoError(t, rt.Stop())
		require.NotZero(t, ask().Silent, "a stopped supervisor is silent too")
	})
}
