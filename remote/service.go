package remote

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
)

// countedService is a generated service whose requests are counted while they are read.
func countedService(generated grpc.ServiceDesc) *grpc.ServiceDesc {
	service := generated
	service.Methods = slices.Clone(generated.Methods)
	for i, m := range generated.Methods {
		service.Methods[i].Handler = func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			return m.Handler(server, ctx, func(request any) error {
				into, ok := request.(proto.Message)
				if !ok {
					return errNoMessage
				}
				return decode(&received{into, visitOf(ctx)})
			}, intercept)
		}
	}
	return &service
}

// answerWithin is what a request has beyond its own timeout for its answer.
const answerWithin = 5 * time.Second

// ask has the gateway carry out a request.
func ask[A messages.Answer](ctx context.Context, s *server, request messages.Request) (A, error) {
	var none A
	caller, _ := ctx.Value(whoKey{}).(who)
	if fault := s.guard.permit(caller, request); fault != nil {
		return none, statusOf(fault)
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
	if err != nil {
		return none, status.Errorf(codes.Unavailable, "the gateway does not answer: %v", err)
	}
	switch a := s.guard.visible(caller.owner, answer).(type) {
	case *messages.Error:
		return none, statusOf(s.guard.discreetError(a))
	case A:
		return a, nil
	}
	return none, status.Errorf(codes.Internal, "the gateway answers with a %T", answer)
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
