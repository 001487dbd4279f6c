package gateway_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
)

// A request that is repeated with its key receives the first answer and is not
// carried out again, even if its timer was changed since.
func TestARequestWithAKeyIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	sys := stacktest.Serve(t, redistest.Shared(t))
	ask := func(owner string, request messages.Request) (any, error) {
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
