package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
)

// drained drains a runtime in the background.
func drained(rt *Runtime, timeout time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := rt.Drain(timeout)
		done <- err
	}()
	synctest.Wait()
	return done
}

func TestGatewayDrainsFirst(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release, s := make(chan struct{}), actortest.NewMemorySource(0)
		l := &fakeTimers{do: until(release)}
		system, rt := gatewayOn(t, l, topicOn(s, 2, acks))
		running, waiting := ask(system, schedule(1)), ask(system, schedule(1))
		synctest.Wait()
		done := drained(rt, time.Minute)

		refused(t, messages.Code_CODE_DRAINING, ask(system, schedule(2)))
		s.Put("taken")
		<-time.After(500 * time.Millisecond)
		_, _, settled, _ := s.Count()
		require.Equal(t, 1, settled, "the pollers continue while the gateway drains")

		close(release)
		require.IsType(t, &messages.ScheduleResponse{}, answered(t, running))
		require.IsType(t, &messages.ScheduleResponse{}, answered(t, waiting), "the request was accepted before the drain")
		require.NoError(t, <-done)
		s.Put("left")
		refused(t, messages.Code_CODE_DRAINING, ask(system, schedule(3)))
		<-time.After(500 * time.Millisecond)
		due, _, _, _ := s.Count()
		require.Equal(t, 1, due)
		require.Equal(t, []string{"schedule 1", "schedule 1"}, l.requests())
		require.NoError(t, rt.Stop())
	})
}

func TestHangingRequestDelaysDrainByItsGracePeriod(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)}, topicOn(actortest.NewMemorySource(10), 2, acks))
		running, waiting := ask(system, schedule(1)), ask(system, schedule(1))
		synctest.Wait()
		began := time.Now()
		require.NoError(t, <-drained(rt, 0))
		require.Less(t, time.Since(began), gatewayGrace+100*time.Millisecond)
		require.GreaterOrEqual(t, time.Since(began), gatewayGrace)
		for _, f := range []*actor.Future{running, waiting} {
			fault := refused(t, messages.Code_CODE_UNAVAILABLE, f)
			require.Contains(t, fault.GetMessage(), "outcome is unknown")
		}
		refused(t, messages.Code_CODE_DRAINING, ask(system, schedule(2)))
		close(release)
		require.NoError(t, rt.Stop())
	})
}

func TestCrashedGatewayStillDrains(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)}, topicOn(actortest.NewMemorySource(10), 2, acks))
		running := ask(system, schedule(1))
		synctest.Wait()
		done := drained(rt, time.Minute)
		system.Root.Send(gateway.PID(system, "wakebell"), actortest.CrashNow{})
		refused(t, messages.Code_CODE_UNAVAILABLE, running)
		refused(t, messages.Code_CODE_DRAINING, ask(system, schedule(2)))
		began := time.Now()
		require.NoError(t, <-done)
		require.Less(t, time.Since(began), gatewayGrace)
		close(release)
		require.NoError(t, rt.Stop())
	})
}

func TestEachDrainRequestIsAnswered(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)}, topicOn(actortest.NewMemorySource(10), 2, acks))
		ask(system, schedule(1))
		synctest.Wait()
		first, second := drained(rt, time.Minute), drained(rt, time.Minute)
		require.Empty(t, first)
		require.Empty(t, second)
		close(release)
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.NoError(t, <-drained(rt, time.Minute))
		require.NoError(t, rt.Stop())
	})
}
