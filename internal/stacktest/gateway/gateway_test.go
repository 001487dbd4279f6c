package gateway_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
)

// asked returns the answer to a request.
func asked[A messages.Answer](t testing.TB, p stacktest.Post, request any) A {
	t.Helper()
	answer, err := wakebell.Answered[A](p.Request(request).Result())
	require.NoError(t, err)
	return answer
}

// refused returns the error that answers a request.
func refused(p stacktest.Post, request any) error {
	_, err := wakebell.Answered[messages.Answer](p.Request(request).Result())
	return err
}

func TestSystemOfFindsSystem(t *testing.T) {
	t.Parallel()
	rdb, system := redistest.Shared(t), stacktest.ActorSystem()
	found := make(chan *wakebell.System, 1)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	sys, err := wakebell.New(system, conntest.New(t, rdb, connection.Config{Logger: stacktest.Quiet}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Forward(topic, wakebell.ToEachActor(actor.PropsFromFunc(func(c actor.Context) {
			if lease, ok := c.Message().(*messages.Lease); ok {
				s, _ := wakebell.SystemOf(c.ActorSystem())
				found <- s
				c.Respond(lease.Ack())
			}
		}))),
	}})
	require.NoError(t, err)
	other, err := wakebell.New(system, conntest.New(t, rdb, connection.Config{Logger: stacktest.Quiet}), wakebell.Config{Name: "other"})
	require.NoError(t, err)

	_, ok := wakebell.SystemOf(system)
	require.False(t, ok, "before Start")
	require.NoError(t, other.Start(t.Context()))
	_, ok = wakebell.SystemOf(system)
	require.False(t, ok, "the System has another name")
	require.NoError(t, sys.Start(t.Context()))
	_, err = topic.Schedule(t.Context(), sys.Client(), "x")
	require.NoError(t, err)
	require.Same(t, sys, stacktest.Receive(t, found))
	s, ok := wakebell.SystemNamed(system, "other")
	require.True(t, ok)
	require.Same(t, other, s)

	require.NoError(t, sys.Stop())
	_, ok = wakebell.SystemOf(system)
	require.False(t, ok, "after Stop")
	require.NoError(t, other.Stop())
	_, ok = wakebell.SystemOf(nil)
	require.False(t, ok)
	_, ok = wakebell.SystemOf(stacktest.ActorSystem())
	require.False(t, ok)
}

func TestMessagesHaveEffectOfCalls(t *testing.T) {
	t.Parallel()
	p := stacktest.PostedOn(t, conntest.New(t, redistest.Shared(t), connection.Config{Prefix: redistest.Name(t) + "-"}), wakebell.Config{})
	ctx, c, topic := t.Context(), p.Client(), p.Topic.Name()
	due := time.Now().Add(time.Hour).Truncate(time.Microsecond)

	scheduled := asked[*messages.ScheduleResponse](t, p, &messages.ScheduleRequest{
		Request: 7, Topic: topic, Id: "a", Body: []byte("hello"), ContentType: "text/plain", CorrelationId: "cause",
		Headers: map[string]string{"x-tenant": "acme"}, When: &messages.ScheduleRequest_At{At: timestamppb.New(due)},
	})
	require.Equal(t, uint64(7), scheduled.GetRequest())
	require.Equal(t, messages.Outcome_OUTCOME_CREATED, scheduled.GetOutcome())
	require.WithinDuration(t, due, scheduled.GetDue().AsTime(), time.Microsecond)
	require.Nil(t, scheduled.GetFound())
	info, content, err := c.Get(ctx, topic, "a")
	require.NoError(t, err, "the prefix is put before the topic")
	require.Equal(t, []byte("hello"), content.Body)
	require.Equal(t, "cause", content.CorrelationID)

	timer := asked[*messages.GetTimerResponse](t, p, &messages.GetTimerRequest{Request: 8, Topic: topic, Id: "a"})
	want := &messages.GetTimerResponse{Request: 8, Timer: &messages.Timer{
		Id: "a", State: messages.State_STATE_PENDING,
		Due: timestamppb.New(info.Due), Activation: timestamppb.New(info.Activation),
		Content: &messages.Content{
			Body: []byte("hello"), ContentType: "text/plain", CorrelationId: "cause",
			Headers: map[string]string{"x-tenant": "acme"},
		},
	}}
	require.True(t, proto.Equal(want, timer), "%v", timer)

	moved := asked[*messages.RescheduleResponse](t, p, &messages.RescheduleRequest{
		Request: 9, Topic: topic, Id: "a", When: &messages.RescheduleRequest_In{In: durationpb.New(2 * time.Hour)},
	})
	require.Equal(t, messages.Outcome_OUTCOME_MOVED, moved.GetOutcome())
	require.WithinDuration(t, due, moved.GetFound().AsTime(), time.Microsecond)
	require.Greater(t, moved.GetDue().AsTime(), due.Add(30*time.Minute))

	ran := asked[*messages.RunNowResponse](t, p, &messages.RunNowRequest{Request: 10, Topic: topic, Id: "a"})
	require.Equal(t, messages.Presence_PRESENCE_PENDING, ran.GetFound())

	batch := asked[*messages.ScheduleBatchResponse](t, p, &messages.ScheduleBatchRequest{Request: 11, Timers: []*messages.ScheduleRequest{
		{Request: 1, Topic: topic, When: &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)}},
		{Request: 2, Topic: topic, Id: "a", IfExists: messages.Policy_POLICY_KEEP},
	}})
	require.Equal(t, uint64(11), batch.GetRequest())
	require.NotEmpty(t, batch.GetTimers()[0].GetId(), "a new id")
	require.Equal(t, uint64(2), batch.GetTimers()[1].GetRequest())
	require.Equal(t, messages.Outcome_OUTCOME_KEPT_PENDING, batch.GetTimers()[1].GetOutcome())

	stats := asked[*messages.GetTopicStatsResponse](t, p, &messages.GetTopicStatsRequest{Request: 12, Topic: topic}).GetStats()
	require.Equal(t, []int64{2, 1, 1}, []int64{stats.GetTotal(), stats.GetDue(), stats.GetPending()})
	require.NotNil(t, stats.GetOldestDue())
	require.Nil(t, stats.GetPausedAt())
	_, err = c.Pause(ctx, topic, "", "")
	require.NoError(t, err)
	require.NotNil(t, asked[*messages.GetTopicStatsResponse](t, p, &messages.GetTopicStatsRequest{Topic: topic}).GetStats().GetPausedAt())

	cancelled := asked[*messages.CancelResponse](t, p, &messages.CancelRequest{Request: 13, Topic: topic, Ids: []string{"b", "a"}})
	require.Equal(t, []messages.Presence{messages.Presence_PRESENCE_ABSENT, messages.Presence_PRESENCE_PENDING}, cancelled.GetFound())
	_, _, err = c.Get(ctx, topic, "a")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}

func TestListTimersReturnsPages(t *testing.T) {
	t.Parallel()
	p := stacktest.Posted(t, redistest.Shared(t), wakebell.Config{})
	topic := p.Topic.Name()
	for n := range 5 {
		asked[*messages.ScheduleResponse](t, p, &messages.ScheduleRequest{
			Topic: topic, Id: strconv.Itoa(n), When: &messages.ScheduleRequest_In{In: durationpb.New(time.Duration(n+1) * time.Hour)},
		})
	}
	var ids []string
	for page := (&messages.ListTimersResponse{Next: "start"}); page.GetNext() != ""; {
		after := page.GetNext()
		if after == "start" {
			after = ""
		}
		page = asked[*messages.ListTimersResponse](t, p, &messages.ListTimersRequest{Request: 3, Topic: topic, Limit: 2, After: after})
		require.Equal(t, uint64(3), page.GetRequest())
		require.LessOrEqual(t, len(page.GetTimers()), 2)
		for _, timer := range page.GetTimers() {
			require.Nil(t, timer.GetContent())
			ids = append(ids, timer.GetId())
		}
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, ids)
	soon := asked[*messages.ListTimersResponse](t, p, &messages.ListTimersRequest{Topic: topic, DueBefore: timestamppb.New(time.Now().Add(90 * time.Minute))})
	require.Len(t, soon.GetTimers(), 1)
	require.Empty(t, asked[*messages.ListTimersResponse](t, p, &messages.ListTimersRequest{Topic: topic, Running: true}).GetTimers())
}

// An actor that cannot do its work now schedules its timer again for an instant of
// its choice and with another body, and abandons the lease.
func TestActorReschedulesItsLeaseByMessage(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	bodies, answers := make(chan string, 4), make(chan any, 4)
	waiting := map[uint64]func(*messages.ScheduleResponse){} // by request; only the actor uses it
	clerk := func(c actor.Context) {
		switch m := c.Message().(type) {
		case *messages.Lease:
			body, err := topic.Read(m)
			if err != nil {
				c.Respond(m.Reject(err))
				return
			}
			bodies <- fmt.Sprint(body, " at attempt ", m.GetAttempt())
			if body == "second" {
				c.Respond(m.Ack())
				return
			}
			again, err := wakebell.ScheduleMessage(topic.Draft("second", wakebell.ID(m.GetId()), wakebell.In(20*time.Millisecond)))
			if err != nil {
				c.Respond(m.Reject(err))
				return
			}
			again.Request = m.GetDelivery()
			sys, _ := wakebell.SystemOf(c.ActorSystem())
			sender := c.Sender()
			waiting[again.GetRequest()] = func(*messages.ScheduleResponse) { c.Send(sender, m.Ack()) }
			c.Request(sys.Gateway(), again)
		case *messages.ScheduleResponse:
			answers <- m.GetOutcome()
			waiting[m.GetRequest()](m)
		case *messages.Error:
			answers <- wakebell.AnswerError(m)
		}
	}
	system := stacktest.ActorSystem()
	sys, err := wakebell.New(system, conntest.New(t, redistest.Shared(t), connection.Config{Logger: stacktest.Quiet}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Forward(topic, wakebell.ToEachActor(actor.PropsFromFunc(clerk))),
	}})
	require.NoError(t, err)
	stacktest.Launch(t, sys)
	_, err = topic.Schedule(t.Context(), sys.Client(), "first", wakebell.ID("a"))
	require.NoError(t, err)
	require.Equal(t, "first at attempt 1", stacktest.Receive(t, bodies))
	require.Equal(t, any(messages.Outcome_OUTCOME_SUPERSEDED), stacktest.Receive(t, answers))
	require.Equal(t, "second at attempt 1", stacktest.Receive(t, bodies), "it is a new timer")
	stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 1 }, "the ack of the old lease has no effect")
	require.NoError(t, sys.Stop())
	_, _, err = sys.Client().Get(context.WithoutCancel(t.Context()), topic.Name(), "a")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}
