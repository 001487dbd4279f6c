package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

func TestInvalidMessageNamesItsField(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	p := stacktest.PostedOn(t, conntest.New(t, rdb, connection.Config{PayloadLimit: 1000}), wakebell.Config{})
	topic, long := p.Topic.Name(), strings.Repeat("x", 70_000)
	forever, never := &durationpb.Duration{Seconds: 300_000_000_000}, &timestamppb.Timestamp{Seconds: 1 << 60}
	in := func(d *durationpb.Duration) *messages.ScheduleRequest {
		return &messages.ScheduleRequest{Topic: topic, When: &messages.ScheduleRequest_In{In: d}}
	}
	debounce := func(delay, limit *durationpb.Duration) *messages.ScheduleRequest {
		return &messages.ScheduleRequest{Topic: topic, When: &messages.ScheduleRequest_Debounce{
			Debounce: &messages.Debounce{Delay: delay, Limit: limit},
		}}
	}
	withPolicy := debounce(durationpb.New(time.Second), nil)
	withPolicy.IfExists = messages.Policy_POLICY_KEEP
	for i, wrong := range []struct {
		request messages.Request
		names   string
	}{
		{&messages.ScheduleRequest{}, "topic"},
		{&messages.ScheduleRequest{Topic: long}, "topic"},
		{&messages.ScheduleRequest{Topic: topic, Id: long}, "id"},
		{&messages.ScheduleRequest{Topic: topic, Id: "\xff"}, "id"},
		{&messages.ScheduleRequest{Topic: topic, Body: make([]byte, 1001)}, "body"},
		{&messages.ScheduleRequest{Topic: topic, ContentType: long}, "ContentType"},
		{&messages.ScheduleRequest{Topic: topic, CorrelationId: long}, "CorrelationID"},
		{&messages.ScheduleRequest{Topic: topic, Headers: map[string]string{"": "x"}}, "Header"},
		{&messages.ScheduleRequest{Topic: topic, Headers: map[string]string{"reply_to": "x"}}, `Header "reply_to"`},
		{&messages.ScheduleRequest{Topic: topic, Headers: map[string]string{"k": long}}, `Header "k"`},
		{&messages.ScheduleRequest{Topic: topic, IfExists: 99}, "if_exists"},
		{&messages.ScheduleRequest{Topic: topic, IfExists: -1}, "if_exists"},
		{&messages.ScheduleRequest{Topic: topic, Once: forever}, "once"},
		{&messages.ScheduleRequest{Topic: topic, Once: durationpb.New(0)}, "Once"},
		{&messages.ScheduleRequest{Topic: topic, When: &messages.ScheduleRequest_At{}}, "at"},
		{&messages.ScheduleRequest{Topic: topic, When: &messages.ScheduleRequest_At{At: never}}, "at"},
		{in(nil), "in"},
		{in(forever), "in"},
		{in(&durationpb.Duration{Nanos: 1 << 30}), "in"},
		{debounce(nil, nil), "debounce.delay"},
		{debounce(durationpb.New(time.Hour), forever), "debounce.limit"},
		{debounce(durationpb.New(time.Hour), durationpb.New(time.Second)), "Debounce"},
		{debounce(durationpb.New(-1), nil), "Debounce"},
		{&messages.ScheduleRequest{Topic: topic, When: &messages.ScheduleRequest_Debounce{}}, "debounce.delay"},
		{&messages.ScheduleRequest{Topic: topic, Key: "k", Once: durationpb.New(time.Hour)}, "Once: without an id"},
		{debounce(durationpb.New(time.Second), nil), "Debounce: without an id"},
		{withPolicy, "Debounce"},
		{&messages.ScheduleBatchRequest{Timers: []*messages.ScheduleRequest{nil}}, "timers"},
		{&messages.ScheduleBatchRequest{Timers: []*messages.ScheduleRequest{{Topic: topic, Id: "a"}, {Topic: topic, Id: "a"}}}, "ID"},
		{&messages.ScheduleBatchRequest{Timers: []*messages.ScheduleRequest{{Topic: topic}, {Topic: topic, IfExists: 99}}}, "timer 1: "},
		{&messages.CancelRequest{Ids: []string{"a"}}, "topic"},
		{&messages.CancelRequest{Topic: topic, Ids: []string{"a", ""}}, "id"},
		{&messages.CancelRequest{Topic: topic, Ids: []string{long}}, "id"},
		{&messages.GetTimerRequest{Topic: topic}, "id"},
		{&messages.GetTimerRequest{Id: "a"}, "topic"},
		{&messages.ListTimersRequest{}, "topic"},
		{&messages.ListTimersRequest{Topic: topic, Limit: 1001}, "limit"},
		{&messages.ListTimersRequest{Topic: topic, Limit: 1 << 31}, "limit"},
		{&messages.ListTimersRequest{Topic: topic, After: "?"}, "cursor"},
		{&messages.ListTimersRequest{Topic: topic, DueBefore: never}, "due_before"},
		{&messages.RescheduleRequest{Topic: topic, Id: "a"}, "when"},
		{&messages.RescheduleRequest{Topic: topic, Id: "a", When: &messages.RescheduleRequest_At{At: never}}, "at"},
		{&messages.RescheduleRequest{Topic: topic, When: &messages.RescheduleRequest_In{In: durationpb.New(0)}}, "id"},
		{&messages.RescheduleRequest{Id: "a", When: &messages.RescheduleRequest_In{In: durationpb.New(0)}}, "topic"},
		{&messages.RunNowRequest{Topic: topic}, "id"},
		{&messages.RunNowRequest{Id: "a"}, "topic"},
		{&messages.GetTopicStatsRequest{}, "topic"},
	} {
		err := refused(p, wrong.request)
		require.ErrorIs(t, err, wakebell.ErrInvalid, "%d: %v", i, wrong.request)
		require.ErrorContains(t, err, wrong.names, "%d", i)
		require.Less(t, len(err.Error()), 1200)
	}
	stats, err := p.Client().Stats(t.Context(), topic)
	require.NoError(t, err)
	require.Zero(t, stats.Total, "nothing was written")
}

func TestMessageAboutMissingTimerReturnsNotFound(t *testing.T) {
	t.Parallel()
	p := stacktest.Posted(t, redistest.Shared(t), wakebell.Config{})
	topic := p.Topic.Name()
	for _, request := range []messages.Request{
		&messages.GetTimerRequest{Topic: topic, Id: "a"},
		&messages.RunNowRequest{Topic: topic, Id: "a"},
		&messages.RescheduleRequest{Topic: topic, Id: "a", When: &messages.RescheduleRequest_In{In: durationpb.New(time.Second)}},
	} {
		require.ErrorIs(t, refused(p, request), wakebell.ErrNotFound)
	}
}

// If another program wrote a payload over the limit for reading, the client and the
// gateway both return an error that names the limit.
func TestGetOfTimerThatIsTooLarge(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	p := stacktest.Posted(t, rdb, wakebell.Config{})
	topic := p.Topic.Name()
	redistest.PutTimer(t, rdb, topic, "large", make([]byte, 16<<20+1), float64(time.Now().Add(time.Hour).Unix()))
	info, content, err := p.Client().Get(t.Context(), topic, "large")
	require.ErrorIs(t, err, wakebell.ErrTooLarge)
	require.ErrorContains(t, err, "16777217 bytes, at most 16777216")
	require.Equal(t, wakebell.StatePending, info.State)
	require.Zero(t, content)
	err = refused(p, &messages.GetTimerRequest{Topic: topic, Id: "large"})
	require.ErrorIs(t, err, wakebell.ErrTooLarge)
	require.ErrorContains(t, err, "16777217 bytes")
}

func TestGatewayReportsErrorOfRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	rdb := server.Client(t)
	p := stacktest.PostedOn(t, conntest.New(t, rdb, connection.Config{RetryFor: -1}), wakebell.Config{}) // otherwise it retries until the timeout
	schedule := &messages.ScheduleRequest{Topic: p.Topic.Name(), Id: "a", Timeout: durationpb.New(stacktest.Patience)}
	asked[*messages.ScheduleResponse](t, p, schedule)

	require.NoError(t, rdb.Set(t.Context(), "timers_timeline:broken", "x", 0).Err())
	require.ErrorIs(t, refused(p, &messages.ScheduleRequest{Topic: "broken"}), wakebell.ErrWrongType)

	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorIs(t, refused(p, schedule), wakebell.ErrMemoryFull)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())

	server.Pause()
	hurried, ok := proto.Clone(schedule).(*messages.ScheduleRequest)
	require.True(t, ok)
	hurried.Timeout = durationpb.New(50 * time.Millisecond)
	require.ErrorIs(t, refused(p, hurried), context.DeadlineExceeded)
	server.Resume()
	asked[*messages.ScheduleResponse](t, p, schedule)

	server.Kill()
	require.ErrorIs(t, refused(p, schedule), wakebell.ErrUnavailable)
	server.Restart(t)
	stacktest.Eventually(t, func() bool { return refused(p, schedule) == nil })
}

func TestGatewayDuringOutageRefusesExcessRequests(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := stacktest.Posted(t, server.Client(t), wakebell.Config{})
	server.Pause()
	const many = 2000
	var futures []*actor.Future
	for range many {
		futures = append(futures, p.Request(&messages.ScheduleRequest{Topic: p.Topic.Name()}))
	}
	last := futures[many-1]
	_, err := wakebell.Answered[*messages.ScheduleResponse](last.Result())
	require.ErrorIs(t, err, wakebell.ErrOverloaded, "at once, while Redis does not answer")
	server.Resume()
	var taken, overloaded int
	for _, f := range futures {
		switch _, err := wakebell.Answered[*messages.ScheduleResponse](f.Result()); {
		case err == nil:
			taken++
		case errors.Is(err, wakebell.ErrOverloaded):
			overloaded++
		default:
			require.NoError(t, err)
		}
	}
	require.Equal(t, gateway.MaxPrincipalRunning+gateway.MaxWaiting/2, taken)
	require.Equal(t, many-taken, overloaded)
	stats, err := p.Client().Stats(t.Context(), p.Topic.Name())
	require.NoError(t, err)
	require.Equal(t, int64(taken), stats.Total, "the answers match what is stored")
}

func TestDrainingGatewayRefusesRequests(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handler, running, release := stacktest.Blocking(topic)
	p := stacktest.Posted(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{handler}, DrainTimeout: time.Minute})
	asked[*messages.ScheduleResponse](t, p, stacktest.Message(t, topic.Draft("x", wakebell.ID("a"))))
	stacktest.Receive(t, running)
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop() }()
	again := &messages.ScheduleRequest{Topic: topic.Name(), Id: "late", IfExists: messages.Policy_POLICY_KEEP}
	stacktest.Eventually(t, func() bool { return errors.Is(refused(p, again), wakebell.ErrDraining) })
	release()
	require.NoError(t, stacktest.Receive(t, stopped))
	require.ErrorIs(t, refused(p, again), wakebell.ErrNotRunning)
}

func TestAnswersBecomeErrors(t *testing.T) {
	t.Parallel()
	for number, code := range messages.Code_name {
		err := wakebell.AnswerError(&messages.Error{Code: messages.Code(number), Message: "why"})
		require.EqualError(t, err, "gateway: why")
		sentinel := map[string]error{
			"CODE_INVALID":     wakebell.ErrInvalid,
			"CODE_NOT_FOUND":   wakebell.ErrNotFound,
			"CODE_UNAVAILABLE": wakebell.ErrUnavailable,
			"CODE_MEMORY_FULL": wakebell.ErrMemoryFull,
			"CODE_WRONG_TYPE":  wakebell.ErrWrongType,
			"CODE_DEADLINE":    context.DeadlineExceeded,
			"CODE_OVERLOADED":  wakebell.ErrOverloaded,
			"CODE_DRAINING":    wakebell.ErrDraining,
			"CODE_CONFLICT":    wakebell.ErrConflict,

			"CODE_NO_SCHEDULE":     recurring.ErrNotFound,
			"CODE_GATE_HELD":       gate.ErrHeld,
			"CODE_TURN_LOST":       gate.ErrTurnLost,
			"CODE_GATES_CLOSED":    gate.ErrClosed,
			"CODE_FENCE_STALE":     gate.ErrFenceStale,
			"CODE_FENCE_REGRESSED": gate.ErrFenceRegressed,
			"CODE_FENCE_UNKNOWN":   gate.ErrFenceUnknown,
			"CODE_GATE_EXHAUSTED":  gate.ErrExhausted,

			"CODE_LEASE_LOST":     wakebell.ErrLeaseLost,
			"CODE_DENIED":         wakebell.ErrDenied,
			"CODE_TOO_LARGE":      wakebell.ErrTooLarge,
			"CODE_CHANNEL_DENIED": wakebell.ErrChannelDenied,
			"CODE_UNSUPPORTED":    wakebell.ErrUnsupported,
			"CODE_FORBIDDEN":      wakebell.ErrForbidden,
		}[code]
		require.Equal(t, sentinel, errors.Unwrap(err), code)
	}
	_, err := wakebell.Answered[*messages.ScheduleResponse](&messages.RunNowResponse{}, nil)
	require.ErrorContains(t, err, "*messages.RunNowResponse")
	_, err = wakebell.Answered[*messages.ScheduleResponse](nil, nil)
	require.ErrorContains(t, err, "unexpected")
	_, err = wakebell.Answered[*messages.ScheduleResponse](nil, actor.ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// FuzzGatewayRequest sends requests that the wire can represent to a System. Each
// request has one answer that the wire can represent, and no actor fails.
func FuzzGatewayRequest(f *testing.F) {
	kinds := []func() messages.Request{
		func() messages.Request { return &messages.ScheduleRequest{} },
		func() messages.Request { return &messages.ScheduleBatchRequest{} },
		func() messages.Request { return &messages.CancelRequest{} },
		func() messages.Request { return &messages.GetTimerRequest{} },
		func() messages.Request { return &messages.ListTimersRequest{} },
		func() messages.Request { return &messages.RescheduleRequest{} },
		func() messages.Request { return &messages.RunNowRequest{} },
		func() messages.Request { return &messages.GetTopicStatsRequest{} },
		func() messages.Request { return &messages.PutRecurringRequest{} },
		func() messages.Request { return &messages.DeleteRecurringRequest{} },
		func() messages.Request { return &messages.EnableRecurringRequest{} },
		func() messages.Request { return &messages.RunRecurringRequest{} },
		func() messages.Request { return &messages.GetRecurringRequest{} },
		func() messages.Request { return &messages.ListRecurringRequest{} },
		func() messages.Request { return &messages.PreviewRecurringRequest{} },
		func() messages.Request { return &messages.PublishRequest{} },
		func() messages.Request { return &messages.GuardTurnRequest{} },
	}
	for kind, seed := range []messages.Request{
		&messages.ScheduleRequest{
			Request: 1, Topic: "t", Id: "a", Body: []byte("x"), Headers: map[string]string{"a": "1"},
			When: &messages.ScheduleRequest_At{At: timestamppb.New(time.Unix(1e9, 0))}, IfExists: 3, Once: durationpb.New(time.Hour),
		},
		&messages.ScheduleBatchRequest{Timers: []*messages.ScheduleRequest{
			{Topic: "t", Id: "a", When: &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)}},
			{Topic: "t", Id: "b", When: &messages.ScheduleRequest_Debounce{Debounce: &messages.Debounce{Delay: durationpb.New(1)}}},
		}},
		&messages.CancelRequest{Topic: "t", Ids: []string{"a", "b"}},
		&messages.GetTimerRequest{Topic: "t", Id: "a"},
		&messages.ListTimersRequest{Topic: "t", Limit: 3, Running: true, DueBefore: timestamppb.Now()},
		&messages.RescheduleRequest{Topic: "t", Id: "a", When: &messages.RescheduleRequest_In{In: durationpb.New(1)}},
		&messages.RunNowRequest{Topic: "t", Id: "a"},
		&messages.GetTopicStatsRequest{Topic: "t", Timeout: durationpb.New(time.Second)},
		&messages.PutRecurringRequest{Schedules: []*messages.Recurring{
			{Name: "a", Topic: "t", When: &messages.Recurrence{Rule: &messages.Recurrence_Every{Every: durationpb.New(time.Hour)}, Start: timestamppb.Now()}},
			{Name: "b", Topic: "t", Celery: &messages.CeleryMessage{Args: []byte("[1]")}, When: &messages.Recurrence{Rule: &messages.Recurrence_Cron{Cron: "0 9 * * *"}, Zone: "Europe/Berlin"}},
			{Name: "c", Topic: "t", When: &messages.Recurrence{Rule: &messages.Recurrence_Crontab{Crontab: &messages.Crontab{Minute: "*/5"}}}},
			{Name: "d", Topic: "t", When: &messages.Recurrence{Rule: &messages.Recurrence_Rrule{Rrule: "FREQ=DAILY"}, Overlap: "skip"}},
		}},
		&messages.DeleteRecurringRequest{Name: "d"},
		&messages.EnableRecurringRequest{Name: "a"},
		&messages.RunRecurringRequest{Name: "a"},
		&messages.GetRecurringRequest{Name: "a"},
		&messages.ListRecurringRequest{After: "1"},
		&messages.PreviewRecurringRequest{Name: "a", Count: 3},
		&messages.PublishRequest{Name: "q", Cap: 5, Messages: []*messages.QueueMessage{{Body: []byte("x"), Key: "k"}}, Window: durationpb.New(time.Hour)},
		&messages.GuardTurnRequest{Gate: "g", Resource: "r", Fence: 7},
	} {
		wire, err := proto.Marshal(seed)
		require.NoError(f, err)
		f.Add(uint8(kind), wire)
	}
	rdb, _ := redistest.Embedded(f)
	p := stacktest.PostedOn(f, conntest.New(f, rdb, connection.Config{PayloadLimit: 10_000}), wakebell.Config{})
	f.Fuzz(func(t *testing.T, kind uint8, wire []byte) {
		request := kinds[int(kind)%len(kinds)]()
		if proto.Unmarshal(wire, request) != nil {
			return
		}
		answer, err := p.Request(request).Result()
		require.NoError(t, err)
		require.Implements(t, (*messages.Answer)(nil), answer)
		_, err = proto.Marshal(answer.(messages.Answer))
		require.NoError(t, err)
		require.Equal(t, request.GetRequest(), answer.(messages.Answer).GetRequest())
		if failed, ok := answer.(*messages.Error); ok {
			require.NotContains(t, []messages.Code{messages.Code_CODE_INTERNAL, messages.Code_CODE_UNSPECIFIED},
				failed.GetCode(), failed.GetMessage())
		}
	})
}
