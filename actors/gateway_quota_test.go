package actors

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
)

func TestTooManyRequestsAreRefused(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		l := &fakeTimers{do: until(release)}
		system, rt := gatewayOn(t, l)
		var taken []*actor.Future
		for n := range gateway.MaxPrincipalRunning + gateway.MaxWaiting/2 {
			taken = append(taken, ask(system, schedule(n)))
		}
		for n := range 10 {
			refused(t, messages.Code_CODE_OVERLOADED, ask(system, schedule(-n)))
		}
		synctest.Wait()
		require.Len(t, l.requests(), gateway.MaxPrincipalRunning)
		close(release)
		for _, f := range taken {
			require.IsType(t, &messages.ScheduleResponse{}, answered(t, f))
		}
		require.Equal(t, gateway.MaxPrincipalRunning, l.peak)
		require.IsType(t, &messages.ScheduleResponse{}, answered(t, ask(system, schedule(1))), "there are free places again")
		require.NoError(t, rt.Stop())
	})
}

// by sends a request as a remote peer with this principal and host.
func by(system *actor.ActorSystem, who, where string, request any) *actor.Future {
	f := actor.NewFuture(system, time.Hour)
	system.Root.Send(gateway.PID(system, "wakebell"), &actor.MessageEnvelope{
		Header:  map[string]string{messages.PrincipalHeader: who, messages.HostHeader: where},
		Message: request, Sender: f.PID(),
	})
	return f
}

// TestOnePrincipalDoesNotFillGateway checks that requests of other principals
// and of this process are accepted although one principal has as many requests as
// it can.
func TestOnePrincipalDoesNotFillGateway(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)})
		var taken []*actor.Future
		for n := range gateway.MaxPrincipalRunning + gateway.MaxWaiting/2 {
			taken = append(taken, by(system, "mallory", "h", schedule(n)))
		}
		fault := refused(t, messages.Code_CODE_OVERLOADED, by(system, "mallory", "i", schedule(-1)))
		require.Contains(t, fault.GetMessage(), "of this principal")
		for n := range gateway.MaxHostRunning - gateway.MaxPrincipalRunning + gateway.MaxWaiting/4 {
			taken = append(taken, by(system, "eve", "h", schedule(10_000+n)))
		}
		fault = refused(t, messages.Code_CODE_OVERLOADED, by(system, "eve", "h", schedule(-2)))
		require.Contains(t, fault.GetMessage(), "of this principal")
		taken = append(taken, by(system, "honest", "h", schedule(-3)))
		fault = refused(t, messages.Code_CODE_OVERLOADED, by(system, "honest", "h", schedule(-4)))
		require.Contains(t, fault.GetMessage(), "of this host")
		for n := range 50 {
			taken = append(taken, by(system, "far", "i", schedule(20_000+n)), ask(system, schedule(30_000+n)))
		}
		close(release)
		for _, f := range taken {
			require.IsType(t, &messages.ScheduleResponse{}, answered(t, f))
		}
		require.NoError(t, rt.Stop())
	})
}

// TestSlowRequestsLeavePlacesForOthers checks that slow requests do not prevent
// others, of other principals or of this process, from running. One principal with
// slow requests leaves several places; many principals leave one for each other.
func TestSlowRequestsLeavePlacesForOthers(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		l := &fakeTimers{do: func(_ context.Context, r messages.Request) messages.Answer {
			if r.GetRequest() < 1000 {
				<-release
			}
			<-time.After(100 * time.Millisecond)
			return nil
		}}
		system, rt := gatewayOn(t, l)
		honest := func(most time.Duration) {
			t.Helper()
			began := time.Now()
			var asked []*actor.Future
			for n := range 5 {
				asked = append(asked, by(system, "honest", "h", schedule(1000+n)), by(system, "", "far", schedule(2000+n)), ask(system, schedule(3000+n)))
			}
			for _, f := range asked {
				require.IsType(t, &messages.ScheduleResponse{}, answered(t, f))
			}
			require.LessOrEqual(t, time.Since(began), most)
		}
		var slow []*actor.Future
		fill := func(who, where string) {
			for range 100 {
				slow = append(slow, by(system, who, where, schedule(len(slow))))
			}
			synctest.Wait()
		}
		fill("mallory", "h")
		require.Len(t, l.requests(), gateway.MaxPrincipalRunning, "a single principal may use most places")
		honest(300 * time.Millisecond) // five at a time, or nearly

		for n := range 7 {
			fill("mallory "+strconv.Itoa(n), "host "+strconv.Itoa(n))
		}
		l.mu.Lock()
		require.GreaterOrEqual(t, l.running, gateway.MaxRunning, "all places are taken")
		l.mu.Unlock()
		honest(500 * time.Millisecond) // one at a time
		close(release)
		for _, f := range slow {
			require.IsType(t, &messages.ScheduleResponse{}, answered(t, f))
		}
		require.NoError(t, rt.Stop())
	})
}

func TestBytesOfOnePrincipalDoNotFillGateway(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)})
		large := &messages.ScheduleRequest{Topic: "t", Body: make([]byte, 15<<20)}
		var taken []*actor.Future
		for range 4 {
			taken = append(taken, by(system, "mallory", "h", large))
		}
		refused(t, messages.Code_CODE_OVERLOADED, by(system, "mallory", "h", large))
		for range 2 {
			taken = append(taken, by(system, "eve", "h", large))
		}
		refused(t, messages.Code_CODE_OVERLOADED, by(system, "eve", "h", large))
		refused(t, messages.Code_CODE_OVERLOADED, by(system, "honest", "h", large))
		taken = append(taken, by(system, "honest", "h", schedule(1)), by(system, "far", "i", large), ask(system, schedule(2)))
		close(release)
		for _, f := range taken {
			require.IsType(t, &messages.ScheduleResponse{}, answered(t, f))
		}
		require.NoError(t, rt.Stop())
	})
}

func TestTooManyBytesAreRefused(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)})
		body := make([]byte, 15<<20)
		var taken []*actor.Future
		for range 4 {
			taken = append(taken, ask(system, &messages.ScheduleRequest{Topic: "t", Body: body}))
		}
		refused(t, messages.Code_CODE_OVERLOADED, ask(system, &messages.ScheduleRequest{Topic: "t", Body: body}))
		small := ask(system, schedule(1))
		close(release)
		for _, f := range append(taken, small, ask(system, schedule(2))) {
			require.IsType(t, &messages.ScheduleResponse{}, answered(t, f))
		}
		require.NoError(t, rt.Stop())
	})
}
