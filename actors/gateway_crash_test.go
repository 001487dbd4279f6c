package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
)

func TestPanickingRequestAffectsNoOther(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		l := &fakeTimers{}
		l.do = func(_ context.Context, r messages.Request) messages.Answer {
			if name(r) == "schedule 1" {
				panic("as the test wants it")
			}
			<-time.After(time.Second)
			return nil
		}
		system, rt := gatewayOn(t, l)
		other := ask(system, schedule(2))
		fault := refused(t, messages.Code_CODE_INTERNAL, ask(system, schedule(1)))
		require.Contains(t, fault.GetMessage(), "as the test wants it")
		require.IsType(t, &messages.ScheduleResponse{}, answered(t, other))
		require.NoError(t, rt.Stop())
	})
}

func TestCrashOfGatewayFailsItsRequests(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		l := &fakeTimers{do: until(release)}
		system, rt := gatewayOn(t, l)
		began := time.Now()
		running, waiting := ask(system, schedule(1)), ask(system, schedule(1))
		synctest.Wait()
		crash := system.Root.RequestFuture(gateway.PID(system, "wakebell"), actortest.CrashNow{}, time.Minute)
		refused(t, messages.Code_CODE_UNAVAILABLE, running)
		refused(t, messages.Code_CODE_UNAVAILABLE, waiting)
		require.Equal(t, began, time.Now(), "requests fail at once, not after the restart")
		close(release)
		require.IsType(t, &messages.ScheduleResponse{}, answered(t, ask(system, schedule(1))), "messages wait for the restart")
		require.Equal(t, []string{"schedule 1", "schedule 1"}, l.requests(), "a request that waited is not executed")
		_, err := crash.Result()
		require.ErrorIs(t, err, actor.ErrTimeout, "the message that caused the panic is lost")
		require.NoError(t, rt.Stop())
	})
}

func TestStopOfGatewayFailsItsRequests(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)})
		running := ask(system, schedule(1))
		synctest.Wait()
		require.NoError(t, rt.Stop())
		refused(t, messages.Code_CODE_UNAVAILABLE, running)
		close(release)
	})
}
