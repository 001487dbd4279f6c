package actors

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
)

func TestTheGatewayTrustsNoMessage(t *testing.T) {
	t.Parallel()
	many := make([]string, gateway.MaxBatch+1)
	batch := make([]*messages.Schedule, gateway.MaxBatch+1)
	actortest.InVirtualTime(t, func(t *testing.T) {
		l := &fakeTimers{}
		system, rt := gatewayOn(t, l)
		for _, wrong := range []struct {
			message any
			names   string
		}{
			{(*messages.Schedule)(nil), "message"},
			{(*messages.ScheduleBatch)(nil), "message"},
			{(*messages.Cancel)(nil), "message"},
			{(*messages.Get)(nil), "message"},
			{(*messages.List)(nil), "message"},
			{(*messages.Reschedule)(nil), "message"},
			{(*messages.RunNow)(nil), "message"},
			{(*messages.Stats)(nil), "message"},
			{&messages.Schedule{Timeout: durationpb.New(0)}, "timeout"},
			{&messages.Schedule{Timeout: durationpb.New(-1)}, "timeout"},
			{&messages.Schedule{Timeout: durationpb.New(gateway.MaxTimeout + 1)}, "timeout"},
			{&messages.Schedule{Timeout: &durationpb.Duration{Seconds: 1, Nanos: -1}}, "timeout"},
			{&messages.Schedule{Body: make([]byte, gateway.MaxRequestBytes)}, "message"},
			{&messages.Cancel{Ids: many}, "timers"},
			{&messages.ScheduleBatch{Timers: batch}, "timers"},
			{&messages.Lease{}, "message"},
			{&emptypb.Empty{}, "message"},
			{"text", "message"},
			{nil, "message"},
		} {
			fault := refused(t, messages.Code_CODE_INVALID, ask(system, wrong.message))
			require.True(t, strings.HasPrefix(fault.GetMessage(), wrong.names+":"), "%T: %s", wrong.message, fault.GetMessage())
		}
		require.Empty(t, l.requests())
		require.NoError(t, rt.Stop())
	})
}

// A message that was made by hand can hold what the wire cannot.
func TestTheGatewayOutlivesABrokenMessage(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := gatewayOn(t, &fakeTimers{do: func(_ context.Context, r messages.Request) messages.Answer {
			_ = r.(*messages.Schedule).GetAt() // panics
			return nil
		}})
		broken := &messages.Schedule{Topic: "t", Id: "a", When: (*messages.Schedule_At)(nil)}
		require.IsType(t, &messages.Error{}, answered(t, ask(system, broken)))
		require.IsType(t, &messages.Scheduled{}, answered(t, ask(system, schedule(1))))
		require.NoError(t, rt.Stop())
	})
}

func TestFailuresThatNobodyWaitsForAreLogged(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var log bytes.Buffer
		l, system := &fakeTimers{}, actortest.QuietSystem()
		rt, err := Start(system, Config{Name: "wakebell", Timers: l, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		send := func(request messages.Request) {
			system.Root.Send(gateway.PID(system, "wakebell"), request)
			synctest.Wait()
		}
		send(schedule(1))
		require.Equal(t, []string{"schedule 1"}, l.requests(), "it is carried out")
		require.Empty(t, log.String())
		for range 100 {
			send(&messages.Get{Topic: "t", Id: "a"})
		}
		require.Equal(t, 1, strings.Count(log.String(), "\n"), "one, not a hundred")
		require.Contains(t, log.String(), "CODE_INVALID")
		<-time.After(time.Second)
		send(&messages.Get{Topic: "t", Id: "a"})
		require.Contains(t, log.String(), "skipped=99")
		require.NoError(t, rt.Stop())
	})
}
