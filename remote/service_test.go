package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

const service = "/wakebell.v1.Timers/"

func message(t testing.TB, of protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
	require.NoError(t, err)
	return kind.New().Interface()
}

// unary calls a method of the service as a gRPC client does.
func unary[R, A any](
	t testing.TB, n *node, method func(rpc.TimersClient, context.Context, *R, ...grpc.CallOption) (*A, error), request *R,
) (*A, error) {
	t.Helper()
	return method(rpc.NewTimersClient(n.dial(t)), bearing(t.Context(), secret), request)
}

func TestEveryCallOfServiceNeedsToken(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	conn := n.dial(t)
	methods := messages.File_messages_services_proto.Services().ByName("Timers").Methods()
	require.Positive(t, methods.Len())
	for i := range methods.Len() {
		m := methods.Get(i)
		if m.IsStreamingClient() {
			continue
		}
		answer := message(t, m.Output())
		err := conn.Invoke(t.Context(), service+string(m.Name()), message(t, m.Input()), answer)
		require.Equal(t, codes.Unauthenticated, status.Code(err), m.Name())
		err = conn.Invoke(bearing(t.Context(), secret), service+string(m.Name()), message(t, m.Input()), answer)
		require.NotContains(t, []codes.Code{codes.Unimplemented, codes.Internal, codes.Unauthenticated}, status.Code(err), "%s: %v", m.Name(), err)
	}
}

func TestUnaryCallsAndTheirErrors(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	topic, name := n.topic.Name(), redistest.Name(t)
	scheduled, err := unary(t, n, rpc.TimersClient.Schedule, &messages.ScheduleRequest{
		Topic: topic, Id: "a", Body: []byte("x"), When: &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)},
	})
	require.NoError(t, err)
	require.Equal(t, "a", scheduled.GetId())
	_, err = unary(t, n, rpc.TimersClient.Schedule, &messages.ScheduleRequest{
		Topic: n.topic.Name() + "-large", Body: make([]byte, 100<<10), When: &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)},
	})
	require.NoError(t, err, "only requests that are not counted are bounded to 64 KiB")
	page, err := unary(t, n, rpc.TimersClient.ListTimers, &messages.ListTimersRequest{Topic: topic})
	require.NoError(t, err)
	require.Len(t, page.GetTimers(), 1)
	_, err = unary(t, n, rpc.TimersClient.PutRecurring, &messages.PutRecurringRequest{Schedules: []*messages.Recurring{{
		Name: name, Topic: topic, When: &messages.Recurrence{Rule: &messages.Recurrence_Cron{Cron: "0 9 * * *"}},
	}}})
	require.NoError(t, err)
	state, err := unary(t, n, rpc.TimersClient.GetRecurring, &messages.GetRecurringRequest{Name: name})
	require.NoError(t, err)
	require.Equal(t, "cron 0 9 * * *", state.GetSchedule().GetRule())
	_, err = unary(t, n, rpc.TimersClient.DeleteRecurring, &messages.DeleteRecurringRequest{Name: name})
	require.NoError(t, err)
	published, err := unary(t, n, rpc.TimersClient.Publish, &messages.PublishRequest{
		Name: name, Messages: []*messages.QueueMessage{{Body: []byte("x")}, {Body: []byte("y")}}, Cap: 2,
	})
	require.NoError(t, err)
	require.Len(t, published.GetMessages(), 2)

	for name, c := range map[string]struct {
		method  string
		request proto.Message
		code    codes.Code
		detail  messages.Code
	}{
		"no timer":       {"GetTimer", &messages.GetTimerRequest{Topic: topic, Id: "none"}, codes.NotFound, messages.Code_CODE_NOT_FOUND},
		"no topic":       {"GetTopicStats", &messages.GetTopicStatsRequest{}, codes.InvalidArgument, messages.Code_CODE_INVALID},
		"no schedule":    {"RunRecurring", &messages.RunRecurringRequest{Name: "none"}, codes.NotFound, messages.Code_CODE_NO_SCHEDULE},
		"a wrong rule":   {"PutRecurring", &messages.PutRecurringRequest{Schedules: []*messages.Recurring{{Name: "x", Topic: "y"}}}, codes.InvalidArgument, messages.Code_CODE_INVALID},
		"a wrong page":   {"ListTimers", &messages.ListTimersRequest{Topic: topic, After: "x"}, codes.InvalidArgument, messages.Code_CODE_INVALID},
		"a wrong tail":   {"Publish", &messages.PublishRequest{Name: "x", Messages: []*messages.QueueMessage{{Tail: "../x"}}}, codes.InvalidArgument, messages.Code_CODE_INVALID},
		"a bad timeout":  {"GetTopicStats", &messages.GetTopicStatsRequest{Topic: topic, Timeout: durationpb.New(-1)}, codes.InvalidArgument, messages.Code_CODE_INVALID},
		"a bad interval": {"PutRecurring", &messages.PutRecurringRequest{Schedules: []*messages.Recurring{{Name: "x", Topic: "y", When: &messages.Recurrence{Rule: &messages.Recurrence_Every{Every: &durationpb.Duration{Seconds: 1 << 60}}}}}}, codes.InvalidArgument, messages.Code_CODE_INVALID},
	} {
		err := n.dial(t).Invoke(bearing(t.Context(), secret), service+c.method, c.request, &messages.ScheduleResponse{})
		got := status.Convert(err)
		require.Equal(t, c.code, got.Code(), name)
		require.Len(t, got.Details(), 1, name)
		detail, _ := got.Details()[0].(*messages.Error)
		require.Equal(t, c.detail, detail.GetCode(), name)
	}
}

func TestHealthNeedsToken(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := grpc_health_v1.NewHealthClient(n.dial(t))
	_, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	_, err = c.Check(bearing(t.Context(), secret), &grpc_health_v1.HealthCheckRequest{Service: "another"})
	require.Equal(t, codes.NotFound, status.Code(err))
	watch, err := c.Watch(bearing(t.Context(), secret), &grpc_health_v1.HealthCheckRequest{Service: "another"})
	require.NoError(t, err)
	told, err := watch.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN, told.GetStatus())
}

func TestReflectionDescribesService(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := grpc_reflection_v1.NewServerReflectionClient(n.dial(t))
	refused, err := c.ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	_, err = refused.Recv()
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	stream, err := c.ServerReflectionInfo(bearing(t.Context(), secret))
	require.NoError(t, err)
	ask := func(r *grpc_reflection_v1.ServerReflectionRequest) *grpc_reflection_v1.ServerReflectionResponse {
		require.NoError(t, stream.Send(r))
		answer, err := stream.Recv()
		require.NoError(t, err)
		return answer
	}
	var names []string
	all := ask(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}})
	for _, s := range all.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	require.Contains(t, names, "wakebell.v1.Timers")
	file := ask(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "wakebell.v1.Timers"},
	})
	require.NotEmpty(t, file.GetFileDescriptorResponse().GetFileDescriptorProto())
}

// conversation is a Session that a test drives frame by frame.
type conversation struct {
	t testing.TB
	grpc.ClientStream
}

func (n *node) converse(t testing.TB) conversation {
	t.Helper()
	ctx, cancel := context.WithCancel(bearing(t.Context(), secret))
	t.Cleanup(cancel)
	stream, err := n.dial(t).NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, service+"Session")
	require.NoError(t, err)
	return conversation{t, stream}
}

func (c conversation) say(all ...*messages.Command) {
	c.t.Helper()
	require.NoError(c.t, c.SendMsg(&messages.Commands{Commands: all}))
}

func (c conversation) hear() *messages.Reply {
	c.t.Helper()
	m := &messages.Replies{}
	require.NoError(c.t, c.RecvMsg(m))
	return m.GetReplies()[0]
}

func TestInvalidFramesEndSession(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	for name, commands := range map[string][]*messages.Command{
		"an empty command":  {{}},
		"a nil command":     {{Kind: &messages.Command_Schedule{}}},
		"too many commands": make([]*messages.Command, 1001),
	} {
		c := n.converse(t)
		for i := range commands {
			if commands[i] == nil {
				commands[i] = &messages.Command{Kind: &messages.Command_GetTopicStats{GetTopicStats: &messages.GetTopicStatsRequest{Topic: "t"}}}
			}
		}
		_ = c.SendMsg(&messages.Commands{Commands: commands})
		if name == "a nil command" { // its wire form is an empty one
			require.Equal(t, messages.Code_CODE_INVALID, c.hear().GetError().GetCode())
			continue
		}
		require.Equal(t, codes.InvalidArgument, status.Code(c.RecvMsg(&messages.Replies{})), name)
	}
	n.alive(t)
}

func TestSessionSpeaksForItselfOnly(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	mine, theirs := n.converse(t), n.converse(t)
	topic := n.topic.Name()
	subscribe := func(name string, credits uint32) *messages.Command {
		return &messages.Command{Kind: &messages.Command_Subscribe{Subscribe: &messages.SubscribeRequest{Request: 1, Topic: topic, Subscriber: name, Credits: credits}}}
	}
	for _, c := range []*messages.Command{subscribe("", 1), subscribe("me", 0), subscribe("me", 10_001)} {
		mine.say(c)
		require.Equal(t, messages.Code_CODE_INVALID, mine.hear().GetError().GetCode())
	}
	mine.say(subscribe("me", 1))
	require.NotNil(t, mine.hear().GetSubscribe())
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x")
	require.NoError(t, err)
	lease := mine.hear().GetLeases().GetLeases()[0]
	theirs.say(&messages.Command{Kind: &messages.Command_Verdicts{Verdicts: &messages.Verdicts{
		Topic: topic, Subscriber: "them", Verdicts: []*messages.Verdict{{Id: lease.GetId(), Kind: &messages.Verdict_Ack{Ack: lease.Ack()}}, nil, {}},
	}}})
	theirs.say(&messages.Command{Kind: &messages.Command_GetTopicStats{GetTopicStats: &messages.GetTopicStatsRequest{Topic: topic}}})
	require.EqualValues(t, 1, theirs.hear().GetGetTopicStats().GetStats().GetLeased(), "the lease is still held")
	mine.say(&messages.Command{Kind: &messages.Command_Verdicts{Verdicts: &messages.Verdicts{
		Topic: topic, Subscriber: "me", Verdicts: []*messages.Verdict{{Id: lease.GetId(), Kind: &messages.Verdict_Ack{Ack: lease.Ack()}}},
	}}})
	eventually(t, func() bool { st, err := n.Client().Stats(t.Context(), topic); return err == nil && st.Total == 0 })
}

// The node stops reading a session that does not read its answers, and serves others.
func TestSessionThatDoesNotReadItsAnswers(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := n.converse(t)
	commands := make([]*messages.Command, 1000)
	for i := range commands {
		commands[i] = &messages.Command{Kind: &messages.Command_GetTopicStats{GetTopicStats: &messages.GetTopicStatsRequest{Topic: n.topic.Name()}}}
	}
	sent, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for sent < 1000 && c.SendMsg(&messages.Commands{Commands: commands}) == nil {
			sent++
		}
	}()
	select {
	case <-done:
		require.Fail(t, "the node read all of it")
	case <-time.After(time.Second):
	}
	n.alive(t)
}
