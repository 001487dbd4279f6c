package actors

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
)

func TestStopEndsHook(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		ended := make(chan error, 1)
		rt, err := Start(actortest.QuietSystem(), Config{
			Name: "a", Logger: actortest.DiscardLogger,
			Topics: []poller.Topic{topicOn(actortest.NewMemorySource(2), 1, func(context.Context, *poller.Delivery) poller.Outcome { return poller.Rejected(poller.ErrStopped) })},
			OnDead: func(ctx context.Context, _ observe.DeadTimer) {
				<-ctx.Done()
				ended <- context.Cause(ctx)
			},
		})
		require.NoError(t, err)
		<-time.After(time.Second)
		began := time.Now()
		require.NoError(t, rt.Stop())
		require.Zero(t, time.Since(began))
		require.Equal(t, poller.ErrStopped, <-ended)
		require.EqualValues(t, 1, rt.Counters()["shelf"].HookSkipped)
	})
}
