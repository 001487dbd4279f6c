package remote

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell/messages"
)

const serviceName = "wakebell.v1.Timers"

// timersService is the service of messages/remote.proto.
var timersService = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Metadata:    "messages/remote.proto",
	Methods: []grpc.MethodDesc{
		method[messages.Schedule]("Schedule"), method[messages.ScheduleBatch]("ScheduleBatch"),
		method[messages.Cancel]("Cancel"), method[messages.Get]("Get"), method[messages.List]("List"),
		method[messages.Reschedule]("Reschedule"), method[messages.RunNow]("RunNow"), method[messages.Stats]("Stats"),
		method[messages.PutRecurring]("PutRecurring"), method[messages.DeleteRecurring]("DeleteRecurring"),
		method[messages.EnableRecurring]("EnableRecurring"), method[messages.RunRecurring]("RunRecurring"),
		method[messages.GetRecurring]("GetRecurring"), method[messages.ListRecurring]("ListRecurring"),
		method[messages.PreviewRecurring]("PreviewRecurring"), method[messages.Publish]("Publish"),
		method[messages.GuardTurn]("GuardTurn"),
	},
	Streams: []grpc.StreamDesc{{
		StreamName: "Session", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			s, _ := srv.(*Server) // what was registered
			return s.session(stream)
		},
	}},
}

// method is a call with one request.
func method[M any, P interface {
	*M
	messages.Request
}](name string) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		request := P(new(M))
		if err := decode(request); err != nil {
			return nil, err
		}
		s, _ := srv.(*Server) // what was registered
		handle := func(ctx context.Context, _ any) (any, error) { return s.ask(ctx, request) }
		if intercept == nil {
			return handle(ctx, request)
		}
		return intercept(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + serviceName + "/" + name}, handle)
	}}
}

// answerWithin is what a request has beyond its own timeout for its answer.
const answerWithin = 5 * time.Second

// ask has the gateway carry out a request.
func (s *Server) ask(ctx context.Context, request messages.Request) (any, error) {
	caller, _ := ctx.Value(whoKey{}).(who)
	system := s.system.ActorSystem()
	timeout := maxTimeout
	if t := request.GetTimeout(); t == nil {
		timeout = defaultTimeout
	} else if t.IsValid() {
		timeout = min(t.AsDuration(), maxTimeout)
	}
	future := actor.NewFuture(system, timeout+answerWithin)
	system.Root.Send(s.system.Gateway(), &actor.MessageEnvelope{
		Header: caller.header(), Message: request, Sender: future.PID(),
	})
	answer, err := future.Result()
	switch a := answer.(type) {
	case *messages.Error:
		return nil, statusOf(a)
	case messages.Answer:
		return a, nil
	}
	return nil, status.Errorf(codes.Unavailable, "the gateway does not answer: %v", err)
}

// Those of the gateway.
const defaultTimeout, maxTimeout = 10 * time.Second, 10 * time.Minute

// statusOf is an Error as gRPC has errors; the Error itself is in its details.
func statusOf(e *messages.Error) error {
	code, ok := map[messages.Code]codes.Code{
		messages.Code_CODE_INVALID:     codes.InvalidArgument,
		messages.Code_CODE_NOT_FOUND:   codes.NotFound,
		messages.Code_CODE_UNAVAILABLE: codes.Unavailable,
		messages.Code_CODE_MEMORY_FULL: codes.ResourceExhausted,
		messages.Code_CODE_WRONG_TYPE:  codes.FailedPrecondition,
		messages.Code_CODE_DEADLINE:    codes.DeadlineExceeded,
		messages.Code_CODE_OVERLOADED:  codes.ResourceExhausted,
		messages.Code_CODE_DRAINING:    codes.Unavailable,
		messages.Code_CODE_CONFLICT:    codes.AlreadyExists,

		messages.Code_CODE_NO_SCHEDULE:     codes.NotFound,
		messages.Code_CODE_GATE_HELD:       codes.FailedPrecondition,
		messages.Code_CODE_TURN_LOST:       codes.Aborted,
		messages.Code_CODE_GATES_CLOSED:    codes.Unavailable,
		messages.Code_CODE_FENCE_STALE:     codes.FailedPrecondition,
		messages.Code_CODE_FENCE_REGRESSED: codes.DataLoss,
	}[e.GetCode()]
	if !ok {
		code = codes.Internal
	}
	plain := status.New(code, e.GetMessage())
	if whole, err := plain.WithDetails(e); err == nil {
		return whole.Err()
	}
	return plain.Err()
}

func (w who) header() map[string]string { return map[string]string{messages.PrincipalHeader: w.owner} }
