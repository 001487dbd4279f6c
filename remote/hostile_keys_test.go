package remote_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
)

// callsOf are the methods of the services that take one request, by its name.
func callsOf() map[string]protoreflect.MethodDescriptor {
	all := map[string]protoreflect.MethodDescriptor{}
	services := messages.File_messages_services_proto.Services()
	for i := range services.Len() {
		for j := range services.Get(i).Methods().Len() {
			if m := services.Get(i).Methods().Get(j); !m.IsStreamingClient() {
				all[string(m.Input().Name())] = m
			}
		}
	}
	return all
}

// call makes a call of either service, and returns its error.
func (n *node) call(t testing.TB, token string, request proto.Message) error {
	t.Helper()
	m := callsOf()[string(request.ProtoReflect().Descriptor().Name())]
	ctx := bearing(t.Context(), token)
	if m.Parent().Name() == "Operations" {
		return ask(ctx, n.dial(t), m, request, message(t, m.Output()))
	}
	return n.dial(t).Invoke(ctx, service+string(m.Name()), request, message(t, m.Output()))
}

// A peer must not choose the key of a queue's dead letters: with it, it could make
// the node write, read and delete any list of Redis.
func TestPeerNamesNoKeys(t *testing.T) {
	t.Parallel()
	n, rdb := serve(t, withMallory()), redistest.Shared(t)
	ctx, foreign := t.Context(), redistest.Name(t)
	require.NoError(t, rdb.LPush(ctx, foreign, "task 1", "task 2").Err())

	k := talk(t, n, malloryToken)
	for name, queue := range map[string]*messages.Queue{
		"dead letters":             {DeadLetters: foreign},
		"separator":                {Separator: ":"},
		"dead letters of a topic":  {DeadLetters: "timers_timeline:" + n.topic.Name()},
		"default dead-letter key":  {DeadLetters: "q::dlq"},
		"separator with a default": {Separator: "::", DeadLetters: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			k.t = t
			k.refused(messages.Code_CODE_INVALID, &messages.SubscribeRequest{Topic: redistest.Name(t), Subscriber: "s", Credits: 1, Queue: queue})
			k.refused(messages.Code_CODE_INVALID, &messages.PublishRequest{
				Name: redistest.Name(t), Queue: queue, Messages: []*messages.QueueMessage{{Body: []byte("x")}}, Cap: 1, DropOldest: true,
			})
			for call, m := range callsOf() {
				request := message(t, m.Input())
				field := m.Input().Fields().ByName("queue")
				if field == nil {
					continue
				}
				request.ProtoReflect().Set(field, protoreflect.ValueOfMessage(queue.ProtoReflect()))
				request.ProtoReflect().Set(m.Input().Fields().ByName("name"), protoreflect.ValueOfString("q"))
				err := n.call(t, malloryToken, request)
				require.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", call, err)
				require.ErrorContains(t, err, "node's configuration", call)
			}
		})
	}
	left, err := rdb.LRange(ctx, foreign, 0, -1).Result()
	require.NoError(t, err)
	require.Equal(t, []string{"task 2", "task 1"}, left)
	_, err = n.topic.Schedule(ctx, n.Client(), "x")
	require.NoError(t, err)
}

// A queue whose name begins as the keys of topics or gates do would have its own
// among theirs: "timers_timeline:a" has the list timers_timeline:a::pending, which is
// the timeline of the topic "a::pending".
func TestQueueIsNotNamedLikeOtherKeys(t *testing.T) {
	t.Parallel()
	n := serve(t, withMallory())
	k := talk(t, n, malloryToken)
	for _, name := range []string{"timers_timeline:a", "timers_topics", "redbeat:a", "{gates}:stream:a", "{gates}:presence", "timers_once:a"} {
		k.refused(messages.Code_CODE_INVALID, &messages.SubscribeRequest{Topic: name, Subscriber: "s", Credits: 1, Queue: &messages.Queue{}})
		k.refused(messages.Code_CODE_INVALID, &messages.PublishRequest{Name: name, Messages: []*messages.QueueMessage{{Body: []byte("x")}}})
	}
}

// Only fields of type Queue name keys in a request, and each is called queue and has
// the name of the queue beside it.
func TestNoOtherRequestHasKeys(t *testing.T) {
	t.Parallel()
	commands := (&messages.Command{}).ProtoReflect().Descriptor().Fields()
	var all []protoreflect.MessageDescriptor
	for i := range commands.Len() {
		all = append(all, commands.Get(i).Message())
	}
	for _, m := range callsOf() {
		all = append(all, m.Input())
	}
	require.NotEmpty(t, all)
	for _, m := range all {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if f.Message() != nil && f.Message().Name() == "Queue" {
				require.EqualValues(t, "queue", f.Name(), m.Name())
				require.True(t, m.Fields().ByName("name") != nil || m.Name() == "SubscribeRequest", m.Name())
			}
		}
	}
}
