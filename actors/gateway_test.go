package actors

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// fakeTimers replaces the timers of Redis: it keeps ids in memory. The function do
// may delay a request and answer it with an error.
type fakeTimers struct {
	do func(ctx context.Context, request messages.Request) messages.Answer // nil: the regular answer

	mu            sync.Mutex
	timers        map[string]bool
	began         []string // the requests, by kind and id
	running, peak int
}

func (l *fakeTimers) Do(ctx context.Context, request messages.Request) messages.Answer {
	l.mu.Lock()
	if l.timers == nil {
		l.timers = map[string]bool{}
	}
	l.began = append(l.began, name(request))
	l.running++
	l.peak = max(l.peak, l.running)
	do := l.do
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running--
	}()
	if do != nil {
		if answer := do(ctx, request); answer != nil {
			return answer
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := request.(type) {
	case *messages.ScheduleRequest:
		l.timers[m.GetId()] = true
		return &messages.ScheduleResponse{Request: m.GetRequest(), Id: m.GetId()}
	case *messages.CancelRequest:
		found := messages.Presence_PRESENCE_ABSENT
		if l.timers[m.GetIds()[0]] {
			found = messages.Presence_PRESENCE_PENDING
		}
		delete(l.timers, m.GetIds()[0])
		return &messages.CancelResponse{Request: m.GetRequest(), Found: []messages.Presence{found}}
	default:
		return messages.Failure(messages.Code_CODE_INVALID, "not in this test")
	}
}

func name(request messages.Request) string {
	switch m := request.(type) {
	case *messages.ScheduleRequest:
		return "schedule " + m.GetId()
	case *messages.CancelRequest:
		return "cancel " + m.GetIds()[0]
	default:
		return "?"
	}
}

func (l *fakeTimers) requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.began...)
}

// until delays every request until the channel is closed, even if the request's
// context ends earlier.
func until(release <-chan struct{}) func(context.Context, messages.Request) messages.Answer {
	return func(context.Context, messages.Request) messages.Answer {
		<-release
		return nil
	}
}

// gatewayOn starts a runtime with a gateway.
func gatewayOn(t *testing.T, l *fakeTimers, topics ...poller.Topic) (*actor.ActorSystem, *Runtime) {
	t.Helper()
	system := actortest.QuietSystem()
	cfg := Config{Name: "wakebell", Topics: topics, Timers: l, Logger: actortest.DiscardLogger, Random: func() float64 { return 0.5 }}
	rt, err := Start(system, cfg.WithProps(actor.WithContextDecorator(actortest.CrashOnDemand)))
	require.NoError(t, err)
	return system, rt
}

// ask sends a request and waits up to an hour for its answer.
func ask(system *actor.ActorSystem, request any) *actor.Future {
	return system.Root.RequestFuture(gateway.PID(system, "wakebell"), request, time.Hour)
}

func answered(t *testing.T, f *actor.Future) any {
	t.Helper()
	answer, err := f.Result()
	require.NoError(t, err)
	return answer
}

// refused requires that the answer is an Error with this code, and returns it.
func refused(t *testing.T, code messages.Code, f *actor.Future) *messages.Error {
	t.Helper()
	fault, ok := answered(t, f).(*messages.Error)
	require.True(t, ok, "no Error")
	require.Equal(t, code.String(), fault.GetCode().String(), fault.GetMessage())
	return fault
}

func schedule(n int) *messages.ScheduleRequest {
	return &messages.ScheduleRequest{Request: uint64(n), Topic: "t", Id: strconv.Itoa(n)}
}

func TestGatewayAnswers(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := gatewayOn(t, &fakeTimers{})
		_, there := system.ProcessRegistry.GetLocal("wakebell/gateway")
		require.True(t, there, "the gateway is registered when Start has returned")
		scheduled, ok := answered(t, ask(system, schedule(7))).(*messages.ScheduleResponse)
		require.True(t, ok)
		require.Equal(t, uint64(7), scheduled.GetRequest())
		fault := refused(t, messages.Code_CODE_INVALID, ask(system, &messages.GetTimerRequest{Request: 8, Topic: "t", Id: "a"}))
		require.Equal(t, uint64(8), fault.GetRequest(), "an Error names the request too")
		require.NoError(t, rt.Stop())
		_, err := ask(system, schedule(9)).Result()
		require.ErrorIs(t, err, actor.ErrDeadLetter)
	})
}

func TestRequestsAboutTimerKeepTheirOrder(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		l := &fakeTimers{}
		l.do = func(_ context.Context, r messages.Request) messages.Answer {
			if s, ok := r.(*messages.ScheduleRequest); ok { // each takes longer than the next one
				<-time.After(time.Second - time.Duration(s.GetRequest())*time.Millisecond)
			}
			return nil
		}
		system, rt := gatewayOn(t, l)
		began := time.Now()
		var last []*actor.Future
		for n := range 20 {
			for range 3 {
				ask(system, schedule(n))
			}
			last = append(last, ask(system, &messages.CancelRequest{Topic: "t", Ids: []string{strconv.Itoa(n)}}))
		}
		for n, f := range last {
			cancelled, ok := answered(t, f).(*messages.CancelResponse)
			require.True(t, ok)
			require.Equal(t, messages.Presence_PRESENCE_PENDING, cancelled.GetFound()[0], "%d must be cancelled after it was scheduled", n)
		}
		require.Equal(t, 3*time.Second, time.Since(began), "requests about different timers do not wait for each other")
		require.Equal(t, 20, l.peak)
		require.NoError(t, rt.Stop())
	})
}

func TestEveryRequestHasDeadline(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release := make(chan struct{})
		l := &fakeTimers{do: until(release)} // it ignores its context
		system, rt := gatewayOn(t, l)
		began := time.Now()
		short := schedule(1)
		short.Timeout = durationpb.New(time.Second)
		behind := schedule(1) // waits for the first request
		behind.Timeout = durationpb.New(2 * time.Second)
		futures := []*actor.Future{ask(system, short), ask(system, behind), ask(system, schedule(2))}
		for i, after := range []time.Duration{time.Second, 2 * time.Second, gateway.DefaultTimeout} {
			refused(t, messages.Code_CODE_DEADLINE, futures[i])
			require.Equal(t, after, time.Since(began))
		}
		close(release)
		require.IsType(t, &messages.ScheduleResponse{}, answered(t, ask(system, schedule(1))), "the timer is free again")
		require.Len(t, l.requests(), 3, "a request whose deadline ended while it waited is not executed")
		require.NoError(t, rt.Stop())
	})
}

func TestRequestIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		release, answers := make(chan struct{}), make(chan any, 10)
		system, rt := gatewayOn(t, &fakeTimers{do: until(release)})
		sender := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch m := c.Message().(type) {
			case *messages.ScheduleResponse, *messages.Error:
				answers <- m
			}
		}))
		system.Root.RequestWithCustomSender(gateway.PID(system, "wakebell"), schedule(1), sender)
		<-time.After(time.Minute)
		close(release)
		synctest.Wait()
		require.Len(t, answers, 1)
		require.IsType(t, &messages.Error{}, <-answers)
		require.NoError(t, rt.Stop())
		require.NoError(t, system.Root.StopFuture(sender).Wait())
	})
}

func TestStartFailsWhenGatewaysNameIsTaken(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		stranger, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "wakebell/gateway")
		require.NoError(t, err)
		cfg := Config{Name: "wakebell", Timers: &fakeTimers{}, Logger: actortest.DiscardLogger}
		_, err = Start(system, cfg)
		require.Error(t, err)
		_, running := Owner(system, "wakebell")
		require.False(t, running)
		require.NoError(t, system.Root.StopFuture(stranger).Wait())
		rt, err := Start(system, cfg)
		require.NoError(t, err)
		require.NoError(t, rt.Stop())
	})
}
