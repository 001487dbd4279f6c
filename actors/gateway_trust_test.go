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
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages"
)

func TestTheGatewayTrustsNoMessage(t *testing.T) {
	t.Parallel()
	many := make([]string, maxBatch+1)
	batch := make([]*messages.Schedule, maxBatch+1)
	virtually(t, func(t *testing.T) {
		l := &ledger{}
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
			{&messages.Schedule{Timeout: durationpb.New(maxTimeout + 1)}, "timeout"},
			{&messages.Schedule{Timeout: &durationpb.Duration{Seconds: 1, Nanos: -1}}, "timeout"},
			{&messages.Schedule{Body: make([]byte, maxRequestBytes)}, "message"},
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
		require.Empty(t, l.begun())
		require.NoError(t, rt.Stop())
	})
}

// A message that was made by hand can hold what the wire cannot.
func TestTheGatewayOutlivesABrokenMessage(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		system, rt := gatewayOn(t, &ledger{do: func(_ context.Context, r messages.Request) messages.Answer {
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
	virtually(t, func(t *testing.T) {
		var log bytes.Buffer
		l, system := &ledger{}, quietSystem()
		rt, err := Start(system, Config{Name: "wakebell", Timers: l, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		send := func(request messages.Request) {
			system.Root.Send(Gateway(system, "wakebell"), request)
			synctest.Wait()
		}
		send(schedule(1))
		require.Equal(t, []string{"schedule 1"}, l.begun(), "it is carried out")
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

// TestCallsKeepTheirOrder draws requests about a few timers, and lets them end
// in any order: those about a timer begin in the order in which they came and
// never before the one before has ended, none is forgotten, and never do more
// than maxRunning run.
func TestCallsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := calls{last: map[string]*call{}}
		var running []*call
		came, ended := map[string][]*call{}, map[string]int{} // by key
		place := map[*call]map[string]int{}
		begin := func() {
			for c := q.begin(); c != nil; c = q.begin() {
				running = append(running, c)
				for key, n := range place[c] {
					require.Equal(t, n, ended[key], "it begins when those before it have ended")
				}
			}
			require.LessOrEqual(t, len(running), maxRunning)
		}
		end := func(i int) {
			c := running[i]
			running = append(running[:i], running[i+1:]...)
			q.end(c)
			for key := range place[c] {
				ended[key]++
			}
		}
		many := rapid.SampledFrom([]int{5, 500}).Draw(t, "timers")
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(running) > 0 && rapid.Bool().Draw(t, "end") {
				end(rapid.IntRange(0, len(running)-1).Draw(t, "which"))
			} else {
				c := &call{size: rapid.IntRange(0, 100).Draw(t, "size")}
				place[c] = map[string]int{}
				for range rapid.IntRange(0, 3).Draw(t, "keys") {
					key := string(rune('a' + rapid.IntRange(0, many).Draw(t, "key")))
					if _, twice := place[c][key]; !twice {
						place[c][key] = len(came[key])
						came[key] = append(came[key], c)
					}
					c.keys = append(c.keys, key)
				}
				q.add(c)
			}
			begin()
		}
		for len(running) > 0 {
			end(0)
			begin()
		}
		require.True(t, q.idle())
		require.Zero(t, q.bytes)
		require.Empty(t, q.last)
		require.Empty(t, q.ready)
	})
}
