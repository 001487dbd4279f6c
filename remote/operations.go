package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

const operationsName = "wakebell.v1.Operations"

func (o *operations) client() *wakebell.Client { return o.system.Client() }

var operationsService = grpc.ServiceDesc{
	ServiceName: operationsName,
	HandlerType: (*any)(nil),
	Metadata:    "messages/operations.proto",
	Methods:     slices.Concat(topicOperations, deadOperations, queueOperations, gateOperations, scheduleOperations),
	Streams:     slices.Concat(topicStreams, deadStreams, queueStreams, gateStreams),
}

// operation is a call with one request, after which it is named, and one answer.
func operation[M, A any, P interface {
	*M
	proto.Message
}](do func(ctx context.Context, o *operations, request P) (*A, error)) grpc.MethodDesc {
	return unary(operationsName, func(ctx context.Context, srv any, request P) (any, error) {
		o, _ := srv.(*operations) // what was registered
		ctx, leave, err := o.enter(ctx, request, o.short)
		if err != nil {
			return nil, err
		}
		defer leave()
		answer, err := do(o.context(ctx), o, request)
		if err != nil {
			return nil, statusOf(errorOf(ctx, err))
		}
		return answer, nil
	})
}

// listing is a call with one request, after which it is named, and a stream of
// answers. A caller who reads slowly holds up nobody else.
func listing[M, A any, P interface {
	*M
	proto.Message
}](do func(ctx context.Context, o *operations, request P) iter.Seq2[*A, error]) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: nameOf[M, P](), ServerStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
		request := P(new(M))
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		o, _ := srv.(*operations) // what was registered
		ctx, leave, err := o.enter(stream.Context(), request, o.long)
		if err != nil {
			return err
		}
		defer leave()
		for answer, err := range do(ctx, o, request) {
			if err != nil {
				return statusOf(errorOf(ctx, ended(ctx, err)))
			}
			if err := stream.SendMsg(answer); err != nil {
				return err
			}
		}
		if err := ended(ctx, nil); err != nil {
			return statusOf(wakebell.ErrorMessage(err))
		}
		return nil
	}}
}

// context is ctx with whose operation it is, and what that may reach.
func (o *operations) context(ctx context.Context) context.Context {
	caller, _ := ctx.Value(whoKey{}).(who)
	return messages.WithCelery(messages.WithPrincipal(ctx, caller.owner), o.celery)
}

// operate has the node carry out what is the same when it is done twice: it is
// asked again when the link breaks, until ctx ends or the link is dead.
func operate[A any, P interface {
	*A
	proto.Message
}](ctx context.Context, c *Client, request proto.Message) (P, error) {
	for pause := redialFirst; ; pause = min(2*pause, redialMax) {
		answer, err := once[A, P](ctx, c, request)
		if !errors.Is(err, errBroken) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// once is operate for what is not: when the link breaks nobody knows whether it
// was done.
func once[A any, P interface {
	*A
	proto.Message
}](ctx context.Context, c *Client, request proto.Message) (P, error) {
	err := travels(request)
	if err == nil {
		err = c.link.wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	answer := P(new(A))
	if err := c.conn.Invoke(c.cfg.credentials(ctx), methodOf(request), request, answer); err != nil {
		return nil, c.failure(ctx, err)
	}
	return answer, nil
}

// list yields what an operation answers. When the link breaks it ends with
// wakebell.ErrUnavailable.
func list[A any, P interface {
	*A
	proto.Message
}](ctx context.Context, c *Client, request proto.Message) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := travels(request)
		if err == nil {
			err = c.link.wait(ctx)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		stream, err := c.conn.NewStream(c.cfg.credentials(ctx), &grpc.StreamDesc{ServerStreams: true}, methodOf(request))
		if err == nil {
			err = errors.Join(stream.SendMsg(request), stream.CloseSend()) // else RecvMsg says why
		}
		for err == nil {
			answer := P(new(A))
			if err = stream.RecvMsg(answer); err == nil && !yield(answer, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, c.failure(ctx, err))
		}
	}
}

// travels refuses a text that is no UTF-8, which the wire does not take.
func travels(request proto.Message) error {
	if _, err := proto.Marshal(request); err != nil {
		return invalid("request", "%v", err)
	}
	return nil
}

func methodOf(request proto.Message) string {
	return "/" + operationsName + "/" + string(request.ProtoReflect().Descriptor().Name())
}

// failure is the error of an operation.
func (c *Client) failure(ctx context.Context, err error) error {
	for _, detail := range status.Convert(err).Details() {
		if e, ok := detail.(*messages.Error); ok {
			return wakebell.AnswerError(e)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return c.cfg.denied(err)
	case codes.Unavailable:
		why := c.cfg.trace.reason(err)
		return &linkError{c.cfg.address, plain(why), wakebell.ErrUnavailable, fmt.Errorf("%w: %w", errBroken, why)}
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}
