package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// carryOutOperation lets in the callers of unary calls of Operations, and makes their
// errors those of gRPC. Calls of other services it passes on. Streams have listing.
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

// listing answers a call of Operations with a stream. A caller that reads slowly does
// not delay others.
func listing[R, A any, P interface {
	*R
	proto.Message
}](o *operations, request P, stream grpc.ServerStreamingServer[A], all func(context.Context, P) iter.Seq2[*A, error]) error {
	ctx, leave, err := o.Enter(stream.Context(), request, o.long)
	if err != nil {
		return err
	}
	defer leave()
	for answer, err := range all(ctx, request) {
		if err != nil {
			return wire.StatusOf(peer.ErrorOf(ctx, ended(ctx, err)))
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	if err := ended(ctx, nil); err != nil {
		return wire.StatusOf(wakebell.ErrorMessage(err))
	}
	return nil
}

func (o *operations) client() *wakebell.Client { return o.system.Client() }

// context is ctx with whose operation it is, and what that may reach.
func (o *operations) context(ctx context.Context) context.Context {
	caller := peer.CallerOf(ctx)
	return messages.WithCelery(messages.WithPrincipal(ctx, caller.Owner), o.celery)
}
