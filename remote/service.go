package remote

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
)

const serviceName = "wakebell.v1.Timers"

// timersService is the service of messages/remote.proto.
var timersService = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Metadata:    "messages/remote.proto",
	Methods: []grpc.MethodDesc{
		method[messages.Schedule](), method[messages.ScheduleBatch](), method[messages.Cancel](), method[messages.Get](),
		method[messages.List](), method[messages.Reschedule](), method[messages.RunNow](), method[messages.Stats](),
		method[messages.PutRecurring](), method[messages.DeleteRecurring](), method[messages.EnableRecurring](),
		method[messages.RunRecurring](), method[messages.GetRecurring](), method[messages.ListRecurring](),
		method[messages.PreviewRecurring](), method[messages.Publish](), method[messages.GuardTurn](),
	},
	Streams: []grpc.StreamDesc{{
		StreamName: "Session", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			s, _ := srv.(*server) // what was registered
			return s.session(stream)
		},
	}},
}

// method is a call with one request to the gateway.
func method[M any, P interface {
	*M
	messages.Request
}]() grpc.MethodDesc {
	return unary(serviceName, func(ctx context.Context, srv any, request P) (any, error) {
		s, _ := srv.(*server) // what was registered
		return s.ask(ctx, request)
	})
}

// unary is a call that is named after its one request.
func unary[M any, P interface {
	*M
	proto.Message
}](service string, do func(ctx context.Context, srv any, request P) (any, error)) grpc.MethodDesc {
	name := nameOf[M, P]()
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		request := P(new(M))
		if err := decode(&received{request, visitOf(ctx)}); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, _ any) (any, error) { return do(ctx, srv, request) }
		if intercept == nil {
			return handle(ctx, request)
		}
		return intercept(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + service + "/" + name}, handle)
	}}
}

func nameOf[M any, P interface {
	*M
	proto.Message
}]() string {
	return string(P(new(M)).ProtoReflect().Descriptor().Name())
}

// answerWithin is what a request has beyond its own timeout for its answer.
const answerWithin = 5 * time.Second

// ask has the gateway carry out a request.
func (s *server) ask(ctx context.Context, request messages.Request) (any, error) {
	caller, _ := ctx.Value(whoKey{}).(who)
	if fault := s.guard.permit(caller, request); fault != nil {
		return nil, statusOf(fault)
	}
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
		return nil, statusOf(s.guard.discreetError(a))
	case messages.Answer:
		return s.guard.visible(caller.owner, a), nil
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
		messages.Code_CODE_FENCE_UNKNOWN:   codes.FailedPrecondition,
		messages.Code_CODE_GATE_EXHAUSTED:  codes.ResourceExhausted,

		messages.Code_CODE_DENIED:         codes.FailedPrecondition,
		messages.Code_CODE_CHANNEL_DENIED: codes.FailedPrecondition,
		messages.Code_CODE_UNSUPPORTED:    codes.FailedPrecondition,
		messages.Code_CODE_TOO_LARGE:      codes.FailedPrecondition,

		messages.Code_CODE_FORBIDDEN: codes.PermissionDenied,
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

// header says which principal sends a message, from which host, and to which
// Celery queues it may have tasks sent.
func (w who) header() map[string]string {
	return map[string]string{messages.PrincipalHeader: w.owner, messages.HostHeader: w.host, messages.CeleryHeader: w.celery}
}
