package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltest"
)

// askAs sends a request of a principal to the gateway, and returns its answer.
func askAs(sys *wakebell.System, owner string, request messages.Request) (any, error) {
	asked := actor.NewFuture(sys.ActorSystem(), stacktest.Patience)
	sys.ActorSystem().Root.Send(sys.Gateway(), &actor.MessageEnvelope{
		Header: map[string]string{messages.PrincipalHeader: owner}, Message: request, Sender: asked.PID(),
	})
	answer, err := asked.Result()
	if fault, ok := answer.(*messages.Error); ok {
		return nil, wakebell.AnswerError(fault)
	}
	return answer, err
}

// A request that is repeated with its key receives the first answer and is not
// carried out again, even if its timer was changed since.
func TestRequestWithKeyIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	sys := stacktest.Serve(t, redistest.Shared(t))
	ask := func(owner string, request messages.Request) (any, error) { return askAs(sys, owner, request) }
	topic := redistest.Name(t)
	hour := &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)}
	request := &messages.ScheduleRequest{Request: 1, Topic: topic, When: hour, Key: "k"} // without an id
	first, err := ask("me", request)
	require.NoError(t, err)
	id := first.(*messages.ScheduleResponse).GetId()
	require.NotEmpty(t, id)
	_, err = sys.Client().Cancel(t.Context(), topic, id)
	require.NoError(t, err)

	again, err := ask("me", &messages.ScheduleRequest{Request: 2, Timeout: durationpb.New(time.Minute), Topic: topic, When: hour, Key: "k"})
	require.NoError(t, err)
	require.Equal(t, id, again.(*messages.ScheduleResponse).GetId())
	require.Equal(t, messages.Outcome_OUTCOME_CREATED, again.(*messages.ScheduleResponse).GetOutcome())
	_, _, err = sys.Client().Get(t.Context(), topic, id)
	require.ErrorIs(t, err, wakebell.ErrNotFound)

	_, err = ask("me", &messages.ScheduleRequest{Topic: topic, Id: "other", When: hour, Key: "k"})
	require.ErrorIs(t, err, wakebell.ErrConflict)
	other, err := ask("you", request)
	require.NoError(t, err)
	require.NotEqual(t, id, other.(*messages.ScheduleResponse).GetId(), "the same key of another caller is a different key")
	_, err = ask("me", &messages.ScheduleRequest{Topic: topic, Key: string(make([]byte, 257))})
	require.ErrorIs(t, err, wakebell.ErrInvalid)

	batch := &messages.ScheduleBatchRequest{Key: "b", Timers: []*messages.ScheduleRequest{{Topic: topic, When: hour}, {Topic: topic, When: hour}, {Topic: topic + "2", When: hour}}}
	one, err := ask("me", batch)
	require.NoError(t, err)
	two, err := ask("me", batch)
	require.NoError(t, err)
	for i, s := range one.(*messages.ScheduleBatchResponse).GetTimers() {
		require.Equal(t, s.GetId(), two.(*messages.ScheduleBatchResponse).GetTimers()[i].GetId())
	}
	ids := []string{one.(*messages.ScheduleBatchResponse).GetTimers()[0].GetId(), one.(*messages.ScheduleBatchResponse).GetTimers()[1].GetId()}
	for range 2 {
		found, err := ask("me", &messages.CancelRequest{Topic: topic, Ids: ids, Key: "c"})
		require.NoError(t, err)
		require.Equal(t, []messages.Presence{messages.Presence_PRESENCE_PENDING, messages.Presence_PRESENCE_PENDING}, found.(*messages.CancelResponse).GetFound())
	}
}

// Requests with keys have the same answers in every layout of their topic, while timers move
// and after that.
func TestRequestWithKeyIsCarriedOutOnceAroundReshards(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("orders")
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }),
	}}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
		sys := w.Start(cfg).System()
		day := &messages.ScheduleRequest_In{In: durationpb.New(24 * time.Hour)}
		batch := &messages.ScheduleBatchRequest{Key: "b"}
		var ids []string
		for i := range 10 {
			ids = append(ids, fmt.Sprint("t", i))
			batch.Timers = append(batch.Timers, &messages.ScheduleRequest{Topic: topic.Name(), Id: ids[i], When: day, TimerKey: bytes.Repeat([]byte("k"), i%3)})
		}
		cancel := &messages.CancelRequest{Topic: topic.Name(), Ids: append(ids, "absent"), Key: "c"}
		stored, err := askAs(sys, "me", batch)
		require.NoError(t, err)
		found, err := askAs(sys, "me", cancel)
		require.NoError(t, err)
		require.Equal(t, messages.Presence_PRESENCE_ABSENT, found.(*messages.CancelResponse).GetFound()[10])
		_, err = topic.Schedule(t.Context(), w.Client(), "x", wakebell.ID("absent"), wakebell.In(24*time.Hour))
		require.NoError(t, err)

		for _, shards := range []int{4, 2, 1} {
			for _, err := range w.Client().Reshard(t.Context(), topic.Name(), shards) {
				require.NoError(t, err)
				again, err := askAs(sys, "me", batch)
				require.NoError(t, err)
				require.True(t, proto.Equal(stored.(proto.Message), again.(proto.Message)))
				again, err = askAs(sys, "me", cancel)
				require.NoError(t, err)
				require.True(t, proto.Equal(found.(proto.Message), again.(proto.Message)))
			}
		}
		st, err := w.Client().Stats(t.Context(), topic.Name())
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Total, "nothing was stored or cancelled again")
	})
}
