package wakebell

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/tracing"
)

// deliverySpan belongs to a delivery that is traced.
type deliverySpan struct {
	tracer  *tracing.Consumer
	settled atomic.Pointer[settlement] // by Meta.Settle, in any goroutine
}

// settlement is a verdict.
type settlement struct{ err error }

// trace returns the headers that carry the span of ctx to an actor; nil if the delivery
// is not traced.
func (s *deliverySpan) trace(ctx context.Context) map[string]string {
	if s == nil {
		return nil
	}
	return s.tracer.Inject(ctx)
}

// traced runs fn in the span of its delivery.
func (h Handler) traced(ctx context.Context, tracer *tracing.Consumer, t Timer[[]byte], d *poller.Delivery, fn HandlerFunc) (err error) {
	inner, span := tracer.Deliver(ctx, &tracing.Delivered{
		Topic: t.Topic, ID: t.ID, CorrelationID: t.CorrelationID, Attempt: t.Attempt, Lateness: t.Lateness(), Size: len(t.Body), Headers: t.Headers,
	})
	own := &deliverySpan{tracer: tracer}
	t.delivery = delivered{d, own}
	returned := false
	defer func() {
		if !returned { // a panic goes on, with its stack
			span.Crash()
			return
		}
		verdict := err
		if s := own.settled.Load(); s != nil {
			verdict = s.err
		}
		span.End(h.outcome(ctx, d, verdict), verdict)
	}()
	err = fn(inner, t)
	returned = true
	return err
}

// outcome returns what becomes of a delivery, as far as its node decides it.
func (h Handler) outcome(ctx context.Context, d *poller.Delivery, err error) tracing.Outcome {
	_, crashed := errors.AsType[*crash](err)
	var ended error
	if ctx.Err() != nil { // asking for the cause of a lease that has not ended is dear
		ended = context.Cause(ctx)
	}
	switch {
	case crashed:
		return tracing.Crashed
	case errors.Is(ended, ErrCancelled):
		return tracing.Cancelled
	case errors.Is(ended, ErrLeaseLost), errors.Is(ended, ErrStopped):
		return tracing.LeaseLost
	case errors.Is(ended, ErrLeaseTooOld):
		return tracing.Hung
	case errors.Is(err, errReleased), err != nil && errors.Is(ended, ErrDraining):
		return tracing.Released
	case err == nil:
		return tracing.Ack
	default:
		return h.failure(d, err)
	}
}

// failure returns what becomes of a delivery whose handler returned an error.
func (h Handler) failure(d *poller.Delivery, err error) tracing.Outcome {
	switch rejected := IsRejected(err); {
	case errors.Is(err, ErrUnreadable):
		return tracing.Dead
	case rejected && h.set.discardRejected, !rejected && h.set.queue != nil && h.set.queue.finalErrors:
		return tracing.Discarded
	case rejected:
		return tracing.Rejected
	case !h.set.retryOnExpiry && d.Failures+1 >= d.MaxFailures:
		return tracing.Dead
	default:
		return tracing.Retry
	}
}
