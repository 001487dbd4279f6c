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

func TestGatewayChecksEveryMessage(t *testing.T) {
	t.Parallel()
	many := make([]string, gateway.MaxBatch+1)
	batch := make([]*messages.ScheduleRequest, gateway.MaxBatch+1)
	actortest.InVirtualTime(t, func(t *testing.T) {
		l := &fakeTimers{}
		system, rt := gatewayOn(t, l)
		for _, wrong := range []struct {
			message any
			names   string
		}{
			{(*messages.ScheduleRequest)(nil), "message"},
			{(*messages.ScheduleBatchRequest)(nil), "message"},
			{(*messages.CancelRequest)(nil), "message"},
			{(*messages.GetTimerRequest)(nil), "message"},
			{(*messages.ListTimersRequest)(nil), "message"},
			{(*messages.RescheduleRequest)(nil), "message"},
			{(*messages.RunNowRequest)(nil), "message"},
			{(*messages.GetTopicStatsRequest)(nil), "message"},
			{&messages.ScheduleRequest{Timeout: durationpb.New(0)}, "timeout"},
			{&messages.ScheduleRequest{Timeout: durationpb.New(-1)}, "timeout"},
			{&messages.ScheduleRequest{Timeout: durationpb.New(gateway.MaxTimeout + 1)}, "timeout"},
			{&messages.ScheduleRequest{Timeout: &durationpb.Duration{Seconds: 1, Nanos: -1}}, "timeout"},
			{&messages.ScheduleRequest{Body: make([]byte, gateway.MaxRequestBytes)}, "message"},
			{&messages.CancelRequest{Ids: many}, "timers"},
			{&messages.ScheduleBatchRequest{Timers: batch}, "timers"},
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

// TestGatewaySurvivesBrokenMessage sends a message with a nil pointer that
// decoding cannot produce.
func TestGatewaySurvivesBrokenMessage(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := gatewayOn(t, &fakeTimers{do: func(_ context.Context, r messages.Request) messages.Answer {
			_ = r.(*messages.ScheduleRequest).GetAt() // panics
			return nil
		}})
		broken := &messages.ScheduleRequest{Topic: "t", Id: "a", When: (*messages.ScheduleRequest_At)(nil)}
		require.IsType(t, &messages.Error{}, answered(t, ask(system, broken)))
		require.IsType(t, &messages.ScheduleResponse{}, answered(t, ask(system, schedule(1))))
		require.NoError(t, rt.Stop())
	})
}

func TestFailuresOfRequestsWithoutSenderAreLogged(t *testing.T) {
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
		require.Equal(t, []string{"schedule 1"}, l.requests(), "the request is executed")
		require.Empty(t, log.String())
		for range 100 {
			send(&messages.GetTimerRequest{Topic: "t", Id: "a"})
		}
		require.Equal(t, 1, strings.Count(log.String(), "\n"), "one line for a hundred failures")
		require.Contains(t, log.String(), "CODE_INVALID")
		<-time.After(time.Second)
		send(&messages.GetTimerRequest{Topic: "t", Id: "a"})
		require.Contains(t, log.String(), "skipped=99")
		require.NoError(t, rt.Stop())
	})
}
