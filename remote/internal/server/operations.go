package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// carryOutOperation admits the callers of unary calls of Operations, and converts
// their errors to gRPC statuses. It passes on calls of other services. Streams use
// listing instead.
func carryOutOperation(ctx context.Context, request any, info *grpc.UnaryServerInfo, do grpc.UnaryHandler) (any, error) {
	o, ok := info.Server.(*operations)
	if !ok {
		return do(ctx, request)
	}
	m, ok := request.(proto.Message)
	if !ok {
		return nil, wire.ErrNoMessage
	}
	ctx, leave, err := o.Enter(ctx, m, o.short)
	if err != nil {
		return nil, err
	}
	defer leave()
	answer, err := do(o.context(ctx), request)
	if err != nil {
		return nil, wire.StatusOf(peer.ErrorOf(ctx, err))
	}
	return answer, nil
}

// listing carries out a streaming call of Operations. A caller that reads slowly
// does not delay others.
func listing[R, A any, P interface {
	*R
	proto.Message
}](o *operations, request P, stream grpc.ServerStreamingServer[A], all func(context.Context, P) iter.Seq2[*A, error]) error {
	ctx, leave, err := o.Enter(stream.Context(), request, o.long)
	if err != nil {
		return err
	}
	defer leave()
	for answer, err := range all(o.context(ctx), request) {
		if err != nil {
			return wire.StatusOf(peer.ErrorOf(ctx, ended(ctx, err)))
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	if err := ended(ctx, nil); err != nil {
		return wire.StatusOf(convert.ErrorMessage(err))
	}
	return nil
}

func (o *operations) client() *wakebell.Client { return o.system.Client() }

// context adds the principal of the caller, its origin, and the Celery queues that
// are open to it.
func (o *operations) context(ctx context.Context) context.Context {
	caller := peer.CallerOf(ctx)
	ctx = messages.WithOrigin(messages.WithPrincipal(ctx, caller.Owner), caller.Origin())
	return messages.WithCelery(ctx, o.celery)
}
