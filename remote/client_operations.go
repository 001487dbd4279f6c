package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// operate makes an idempotent call of Operations. The call is repeated when the link
// breaks, until ctx ends or the link has been down for DeadLink.
func operate[R, A any](ctx context.Context, c *Client, call operation[R, A], request *R) (*A, error) {
	for pause := wire.RedialFirst; ; pause = min(2*pause, wire.RedialMax) {
		answer, err := once(ctx, c, call, request)
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

// operation is a unary method of the client of Operations.
type operation[R, A any] = func(rpc.OperationsClient, context.Context, *R, ...grpc.CallOption) (*A, error)

// once makes a call of Operations that is not idempotent. It is not repeated: when
// the link breaks, the outcome is unknown.
func once[R, A any](ctx context.Context, c *Client, call operation[R, A], request *R) (*A, error) {
	err := checkEncodable(request)
	if err == nil {
		err = c.link.wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	answer, err := call(c.operations, c.cfg.credentials(ctx), request)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	return answer, nil
}

// streamed is a method of the client of Operations that answers with a stream.
type streamed[R, A any] = func(rpc.OperationsClient, context.Context, *R, ...grpc.CallOption) (grpc.ServerStreamingClient[A], error)

// list yields the answers of a call of Operations. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func list[R, A any](ctx context.Context, c *Client, call streamed[R, A], request *R) iter.Seq2[*A, error] {
	return func(yield func(*A, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := checkEncodable(request)
		if err == nil {
			err = c.link.wait(ctx)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		stream, err := call(c.operations, c.cfg.credentials(ctx), request)
		for err == nil {
			var answer *A
			if answer, err = stream.Recv(); err == nil && !yield(answer, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, c.failure(ctx, err))
		}
	}
}

// checkEncodable rejects requests with texts that are not UTF-8, which protobuf
// cannot encode.
func checkEncodable(request any) error {
	m, ok := request.(proto.Message)
	if !ok {
		return wire.ErrNoMessage
	}
	if _, err := proto.Marshal(m); err != nil {
		return argument.Invalid("request", "%v", err)
	}
	return nil
}

// failure converts the error of a call of Operations.
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
		why := c.cfg.errs.reason(err)
		return &linkError{c.cfg.address, plain(why), wakebell.ErrUnavailable, fmt.Errorf("%w: %w", errBroken, why)}
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}
