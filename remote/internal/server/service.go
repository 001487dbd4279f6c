package server

import (
	"context"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// countedService wraps a generated service so that the bytes of its requests are
// counted.
func countedService(generated grpc.ServiceDesc) *grpc.ServiceDesc {
	service := generated
	service.Methods = slices.Clone(generated.Methods)
	for i, m := range generated.Methods {
		service.Methods[i].Handler = func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			return m.Handler(server, ctx, func(request any) error {
				into, ok := request.(proto.Message)
				if !ok {
					return wire.ErrNoMessage
				}
				return decode(peer.Counted(ctx, into))
			}, intercept)
		}
	}
	return &service
}

// ask sends a request to the gateway and waits for the response.
func ask[A messages.Answer](ctx context.Context, s *Server, request messages.Request) (A, error) {
	var none A
	caller := peer.CallerOf(ctx)
	if fault := s.guard.Permit(caller, request); fault != nil {
		return none, wire.StatusOf(fault)
	}
	system := s.system.ActorSystem()
	timeout := wire.MaxTimeout
	if t := request.GetTimeout(); t == nil {
		timeout = wire.DefaultTimeout
	} else if t.IsValid() {
		timeout = min(max(t.AsDuration(), 0), wire.MaxTimeout) // the gateway refuses one below
	}
	future := actor.NewFuture(system, timeout+wire.AnswerWithin)
	system.Root.Send(s.system.Gateway(), &actor.MessageEnvelope{
		Header: caller.Header(), Message: s.guard.Narrow(caller, request), Sender: future.PID(),
	})
	answer, err := future.Result()
	if err != nil {
		return none, status.Errorf(codes.Unavailable, "the gateway does not answer: %v", err)
	}
	switch a := s.guard.Visible(caller.Owner, answer).(type) {
	case *messages.Error:
		return none, wire.StatusOf(s.guard.DiscreetError(a))
	case A:
		return a, nil
	}
	return none, status.Errorf(codes.Internal, "the gateway answers with a %T", answer)
}
