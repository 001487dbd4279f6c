package wakebell_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// post is a System and the ActorSystem from which it is asked by message.
type post struct {
	*wakebell.System
	actors *actor.ActorSystem
	topic  wakebell.Topic[string]
}

// posted starts a System that handles nothing, unless cfg says so.
func posted(t testing.TB, rdb redis.UniversalClient, cfg wakebell.Config) post {
	t.Helper()
	cfg.Logger = quiet
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = -1
	}
	system := actorSystem()
	sys, err := wakebell.New(system, rdb, cfg)
	require.NoError(t, err)
	return post{launch(t, sys), system, wakebell.NewTopic[string](redistest.Name(t))}
}

func (p post) request(request any) *actor.Future {
	return p.actors.Root.RequestFuture(p.Gateway(), request, patience)
}

// asked is the answer to a request.
func asked[A messages.Answer](t testing.TB, p post, request any) A {
	t.Helper()
	answer, err := wakebell.Answered[A](p.request(request).Result())
	require.NoError(t, err)
	return answer
}

// refused is the error that a request ends in.
func refused(p post, request any) error {
	_, err := wakebell.Answered[messages.Answer](p.request(request).Result())
	return err
}

func TestOfFindsTheSystem(t *testing.T) {
	t.Parallel()
	rdb, system := redistest.Shared(t), actorSystem()
	found := make(chan *wakebell.System, 1)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	sys, err := wakebell.New(system, rdb, wakebell.Config{Logger: quiet, Handlers: []wakebell.Handler{
		wakebell.Forward(topic, wakebell.ToEachActor(actor.PropsFromFunc(func(c actor.Context) {
			if lease, ok := c.Message().(*messages.Lease); ok {
				s, _ := wakebell.SystemOf(c.ActorSystem())
				found <- s
				c.Respond(lease.Ack())
			}
		}))),
	}})
	require.NoError(t, err)
	other, err := wakebell.New(system, rdb, wakebell.Config{Name: "other", Logger: quiet})
	require.NoError(t, err)

	_, ok := wakebell.SystemOf(system)
	require.False(t, ok, "before Start")
	require.NoError(t, other.Start(t.Context()))
	_, ok = wakebell.SystemOf(system)
	require.False(t, ok, "it has another name")
	require.NoError(t, sys.Start(t.Context()))
	_, err = topic.Schedule(t.Context(), sys.Client(), "x")
	require.NoError(t, err)
	require.Same(t, sys, receive(t, found))
	s, ok := wakebell.SystemNamed(system, "other")
	require.True(t, ok)
	require.Same(t, other, s)

	require.NoError(t, sys.Stop())
	_, ok = wakebell.SystemOf(system)
	require.False(t, ok, "after Stop")
	require.NoError(t, other.Stop())
	_, ok = wakebell.SystemOf(nil)
	require.False(t, ok)
	_, ok = wakebell.SystemOf(actorSystem())
	require.False(t, ok)
}

func TestMessagesDoWhatCallsDo(t *testing.T) {
	t.Parallel()
	p := posted(t, redistest.Shared(t), wakebell.Config{Prefix: redistest.Name(t) + "-"})
	ctx, c, topic := t.Context(), p.Client(), p.topic.Name()
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
	require.NotEmpty(t, batch.GetTimers()[0].GetId(), "a new one")
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

func TestAListComesInPages(t *testing.T) {
	t.Parallel()
	p := posted(t, redistest.Shared(t), wakebell.Config{})
	topic := p.topic.Name()
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

// message is what a draft becomes on its way over a network.
func message(t testing.TB, d wakebell.Draft) *messages.ScheduleRequest {
	t.Helper()
	m, err := wakebell.ScheduleMessage(d)
	require.NoError(t, err)
	wire, err := proto.Marshal(m)
	require.NoError(t, err)
	var read messages.ScheduleRequest
	require.NoError(t, proto.Unmarshal(wire, &read))
	return &read
}

func TestAMessageStoresTheSameBytesAsACall(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	p := posted(t, rdb, wakebell.Config{})
	same := func(t *testing.T, draft func(topic string) wakebell.Draft) {
		t.Helper()
		byCall, byMessage := redistest.Name(t), redistest.Name(t)
		_, err := p.Client().Schedule(t.Context(), draft(byCall))
		require.NoError(t, err)
		asked[*messages.ScheduleResponse](t, p, message(t, draft(byMessage)))
		stored := func(topic string) string {
			payload, err := rdb.HGet(t.Context(), peer{topic: topic}.payloads(), "id").Result()
			require.NoError(t, err)
			return payload
		}
		require.Equal(t, stored(byCall), stored(byMessage))
	}
	id := wakebell.ID("id")
	same(t, func(n string) wakebell.Draft { return wakebell.NewTopic[string](n).Draft("text ✓", id) })
	same(t, func(n string) wakebell.Draft { return wakebell.NewTopic[string](n).Draft("", id) })
	same(t, func(n string) wakebell.Draft { return wakebell.NewTopic[invoice](n).Draft(invoice{"7", 1}, id) })
	same(t, func(n string) wakebell.Draft { return wakebell.NewTopic[*invoice](n).Draft(nil, id) })
	same(t, func(n string) wakebell.Draft {
		return wakebell.NewTopic[*wrapperspb.StringValue](n).Draft(wrapperspb.String("x"), id)
	})
	same(t, func(n string) wakebell.Draft {
		return wakebell.NewTopic[[]byte](n).Draft([]byte{0, 0xff}, id, wakebell.ContentType("application/pdf"))
	})
	same(t, func(n string) wakebell.Draft {
		return wakebell.NewTopic[string](n).Draft("x", id, wakebell.CorrelationID("cause"),
			wakebell.Header("a", "1"), wakebell.Header("b", "2"), wakebell.Header("a", "3"))
	})
}

func TestAMessageHasThePolicyOfItsDraft(t *testing.T) {
	t.Parallel()
	p := posted(t, redistest.Shared(t), wakebell.Config{})
	hour, soon := wakebell.In(time.Hour), wakebell.At(time.Now().Add(time.Minute))
	for name, opts := range map[string][2][]wakebell.ScheduleOption{
		"replace":      {{hour}, {soon}},
		"keep":         {{hour}, {soon, wakebell.IfExists(wakebelltype.PolicyKeep)}},
		"earlier":      {{hour}, {soon, wakebell.IfExists(wakebelltype.PolicyEarliest)}},
		"later":        {{soon}, {hour, wakebell.IfExists(wakebelltype.PolicyEarliest)}},
		"debounce":     {{wakebell.Debounce(time.Minute, time.Hour)}, {wakebell.Debounce(2*time.Hour, 3*time.Hour)}},
		"no limit":     {{wakebell.Debounce(time.Minute, 0)}, {wakebell.Debounce(2*time.Hour, 0)}},
		"at the limit": {{wakebell.Debounce(time.Minute, time.Hour)}, {wakebell.Debounce(time.Hour, time.Hour)}},
		"at once":      {{}, {}},
	} {
		outcome := func(t *testing.T, schedule func(wakebell.Draft) (due time.Time, outcome int)) (time.Time, int) {
			t.Helper()
			topic := wakebell.NewTopic[string](redistest.Name(t))
			schedule(topic.Draft("x", append(opts[0], wakebell.ID("id"))...))
			return schedule(topic.Draft("x", append(opts[1], wakebell.ID("id"))...))
		}
		dueByCall, byCall := outcome(t, func(d wakebell.Draft) (time.Time, int) {
			s, err := p.Client().Schedule(t.Context(), d)
			require.NoError(t, err)
			return s[0].Due, int(s[0].Outcome)
		})
		dueByMessage, byMessage := outcome(t, func(d wakebell.Draft) (time.Time, int) {
			s := asked[*messages.ScheduleResponse](t, p, message(t, d))
			return s.GetDue().AsTime(), int(s.GetOutcome())
		})
		require.Equal(t, byCall, byMessage, name)
		require.WithinDuration(t, dueByCall, dueByMessage, patience, name)
	}

	once := p.topic.Draft("x", wakebell.ID("once"), hour, wakebell.Once(time.Hour))
	asked[*messages.ScheduleResponse](t, p, message(t, once))
	asked[*messages.CancelResponse](t, p, &messages.CancelRequest{Topic: p.topic.Name(), Ids: []string{"once"}})
	require.Equal(t, messages.Outcome_OUTCOME_ALREADY_DONE, asked[*messages.ScheduleResponse](t, p, message(t, once)).GetOutcome())

	_, err := wakebell.ScheduleMessage(p.topic.Draft("x", wakebell.ID("")))
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// The gateway's enumerations are made of the library's by their numbers.
func TestTheEnumerationsAreNumberedAlike(t *testing.T) {
	t.Parallel()
	for name, number := range map[string]int{
		"OUTCOME_CREATED":      int(wakebelltype.OutcomeCreated),
		"OUTCOME_REPLACED":     int(wakebelltype.OutcomeReplaced),
		"OUTCOME_SUPERSEDED":   int(wakebelltype.OutcomeSuperseded),
		"OUTCOME_KEPT_PENDING": int(wakebelltype.OutcomeKeptPending),
		"OUTCOME_KEPT_RUNNING": int(wakebelltype.OutcomeKeptRunning),
		"OUTCOME_KEPT_EARLIER": int(wakebelltype.OutcomeKeptEarlier),
		"OUTCOME_MOVED":        int(wakebelltype.OutcomeMoved),
		"OUTCOME_ALREADY_DONE": int(wakebelltype.OutcomeAlreadyDone),
	} {
		require.Equal(t, name, messages.Outcome(number).String())
	}
	for name, number := range map[string]int{
		"PRESENCE_ABSENT":  int(wakebelltype.PresenceAbsent),
		"PRESENCE_PENDING": int(wakebelltype.PresencePending),
		"PRESENCE_RUNNING": int(wakebelltype.PresenceRunning),
	} {
		require.Equal(t, name, messages.Presence(number).String())
	}
	for name, policy := range map[string]wakebelltype.Policy{
		"POLICY_KEEP":     wakebelltype.PolicyKeep,
		"POLICY_EARLIEST": wakebelltype.PolicyEarliest,
	} {
		m, err := wakebell.ScheduleMessage(wakebell.NewTopic[string]("x").Draft("x", wakebell.IfExists(policy)))
		require.NoError(t, err)
		require.Equal(t, name, m.GetIfExists().String())
	}
}

// An actor that cannot do its work now asks for its timer again, in an hour of
// its own and with another body, and lets the lease go.
func TestAnActorReschedulesItsLeaseByMessage(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	bodies, answers := make(chan string, 4), make(chan any, 4)
	waiting := map[uint64]func(*messages.ScheduleResponse){} // by request; the actor's own
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
	system := actorSystem()
	sys, err := wakebell.New(system, redistest.Shared(t), wakebell.Config{Logger: quiet, Handlers: []wakebell.Handler{
		wakebell.Forward(topic, wakebell.ToEachActor(actor.PropsFromFunc(clerk))),
	}})
	require.NoError(t, err)
	launch(t, sys)
	_, err = topic.Schedule(t.Context(), sys.Client(), "first", wakebell.ID("a"))
	require.NoError(t, err)
	require.Equal(t, "first at attempt 1", receive(t, bodies))
	require.Equal(t, any(messages.Outcome_OUTCOME_SUPERSEDED), receive(t, answers))
	require.Equal(t, "second at attempt 1", receive(t, bodies), "it is a new timer")
	eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 1 }, "the ack of the old lease counts for nothing")
	require.NoError(t, sys.Stop())
	_, _, err = sys.Client().Get(context.WithoutCancel(t.Context()), topic.Name(), "a")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}
