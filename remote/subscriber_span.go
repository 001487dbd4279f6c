package remote

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages"
)

// run calls the handler, in the span of its delivery.
func (t *subscriber) run(ctx context.Context, l *messages.Lease) (err error) {
	if !t.tracer.On() {
		return t.handle(ctx, l)
	}
	inner, span := t.tracer.Deliver(ctx, &tracing.Delivered{
		Topic: l.GetTopic(), ID: l.GetId(), CorrelationID: l.GetCorrelationId(), Attempt: int(l.GetAttempt()),
		Lateness: l.GetDelivered().AsTime().Sub(l.GetActivation().AsTime()), Size: len(l.GetBody()),
		Headers: convert.HeaderList(l.GetHeaders()), Hop: l.GetTrace(),
	})
	returned := false
	defer func() {
		if !returned {
			span.Crash()
			return
		}
		err = usercode.Checked(err)
		span.End(outcomeOf(context.Cause(ctx), err), err)
	}()
	err = t.handle(inner, l)
	returned = true
	return err
}

// outcomeOf returns what a subscriber answers; ended is the cause of the end of its
// context.
func outcomeOf(ended, err error) tracing.Outcome {
	switch {
	case errors.Is(ended, wakebell.ErrCancelled):
		return tracing.Cancelled
	case errors.Is(ended, wakebell.ErrLeaseLost):
		return tracing.LeaseLost
	case errors.Is(ended, wakebell.ErrLeaseTooOld):
		return tracing.Hung
	case err == nil:
		return tracing.Ack
	case wakebell.IsReleased(err):
		return tracing.Released
	case wakebell.IsRejected(err):
		return tracing.Rejected
	default:
		return tracing.Retry
	}
}
