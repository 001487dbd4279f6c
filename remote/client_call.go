package remote

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// requestTimeout is the time that the gateway has for a call without a deadline.
const requestTimeout = 10 * time.Second

// publishAgain is for how long after it was sent a publication may be stored again: the node
// remembers it for a minute.
const publishAgain = 45 * time.Second

var publishing = (&messages.PublishRequest{}).ProtoReflect().Descriptor()

// call sends a request until it has a final answer, ctx ends, or the link has been
// down for DeadLink. The caller must not use the request afterwards.
func call[A messages.Answer](ctx context.Context, c *Client, request messages.Request) (A, error) {
	var none A
	pause := 20 * time.Millisecond
	for next := wire.Question(request); ; next = proto.CloneOf(wire.Question(request)) { // the one before may still be written
		answer, err := c.link.Ask(ctx, next)
		if err == nil {
			a, err := wakebell.Answered[A](answer, nil)
			if err == nil || !temporary(err) {
				return a, err
			}
			if c.wait(ctx, pause) != nil {
				return none, err
			}
			pause = min(2*pause, time.Second)
			continue
		}
		if !errors.Is(err, errBroken) {
			return none, err
		}
		if broken, sent := errors.AsType[*brokenError](err); sent && request.ProtoReflect().Descriptor() == publishing {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, broken.sent.Add(publishAgain))
			defer cancel()
		}
	}
}

// temporary reports whether the same request may soon have another answer.
func temporary(err error) bool {
	return errors.Is(err, wakebell.ErrOverloaded) || errors.Is(err, wakebell.ErrDraining)
}

// wait waits for d before a request is repeated. It fails if ctx has no deadline:
// then the request is not repeated.
func (c *Client) wait(ctx context.Context, d time.Duration) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return context.DeadlineExceeded
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// number sets the request number of a question, and the time that is left for it.
func number(ctx context.Context, asked wire.Question, n uint64) {
	switch m := asked.(type) {
	case *messages.ScheduleRequest:
		m.Request, m.Timeout = n, timeoutOf(ctx)
		return
	case *messages.AcquireTurnRequest: // its timeout has another meaning
		m.Request = n
		return
	}
	r := asked.ProtoReflect()
	fields := r.Descriptor().Fields()
	r.Set(fields.ByName("request"), protoreflect.ValueOfUint64(n))
	if timeout := fields.ByName("timeout"); timeout != nil {
		r.Set(timeout, protoreflect.ValueOfMessage(timeoutOf(ctx).ProtoReflect()))
	}
}

func timeoutOf(ctx context.Context) *durationpb.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return durationpb.New(requestTimeout)
	}
	return durationpb.New(min(max(time.Until(deadline), time.Millisecond), wire.MaxTimeout))
}
