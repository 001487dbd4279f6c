package remote

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/gatewayconv"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// run calls the handler, in the span of its delivery.
func (t *subscriber) run(ctx context.Context, l *messages.Lease) (err error) {
	tracer := t.link.cfg.edge.Tracer
	if !tracer.On() {
		return t.handle(ctx, l)
	}
	inner, span := tracer.Deliver(ctx, &tracing.Delivered{
		Topic: l.GetTopic(), ID: l.GetId(), CorrelationID: l.GetCorrelationId(), Attempt: int(l.GetAttempt()),
		Lateness: l.GetDelivered().AsTime().Sub(l.GetActivation().AsTime()), Size: len(l.GetBody()),
		Headers: gatewayconv.HeaderList(l.GetHeaders()), Hop: l.GetTrace(),
	})
	returned := false
	defer func() {
		if !returned {
			span.Crash()
			return
		}
		span.End(string(outcomeOf(context.Cause(ctx), err)), err)
	}()
	err = t.handle(inner, l)
	returned = true
	return err
}

// outcomeOf returns what a subscriber answers, in the words of events; ended is the
// cause of the end of its context.
func outcomeOf(ended, err error) wakebelltype.EventKind {
	switch {
	case errors.Is(ended, wakebell.ErrCancelled):
		return wakebelltype.EventCancelled
	case errors.Is(ended, wakebell.ErrLeaseLost):
		return wakebelltype.EventLost
	case err == nil:
		return wakebelltype.EventAcked
	case wakebell.IsRejected(err):
		return wakebelltype.EventDead
	default:
		return wakebelltype.EventRetried
	}
}
