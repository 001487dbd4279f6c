package remote

import (
	"context"
	"slices"

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

// ask has the gateway carry out a request.
func ask[A messages.Answer](ctx context.Context, s *server, request messages.Request) (A, error) {
	var none A
	caller := callerOf(ctx)
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
