package wakebell

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/wakebelltype"
)

// deliverySpan belongs to a delivery that is traced.
type deliverySpan struct {
	tracer  *tracing.Tracer
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
func (h Handler) traced(ctx context.Context, tracer *tracing.Tracer, t Timer[[]byte], d *poller.Delivery, fn HandlerFunc) (err error) {
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
		span.End(string(h.outcome(ctx, d, verdict)), verdict)
	}()
	err = fn(inner, t)
	returned = true
	return err
}

// outcome returns what becomes of a delivery, as far as its node decides it, in the
// words of events.
func (h Handler) outcome(ctx context.Context, d *poller.Delivery, err error) wakebelltype.EventKind {
	_, crashed := errors.AsType[*crash](err)
	ended := context.Cause(ctx)
	switch {
	case crashed:
		return wakebelltype.EventCrashed
	case errors.Is(ended, ErrCancelled):
		return wakebelltype.EventCancelled
	case errors.Is(ended, ErrLeaseLost), errors.Is(ended, ErrStopped):
		return wakebelltype.EventLost
	case errors.Is(err, errReleased), err != nil && errors.Is(ended, ErrDraining):
		return wakebelltype.EventReleased
	case errors.Is(ended, ErrLeaseTooOld):
		err = ended
	}
	switch {
	case err == nil:
		return wakebelltype.EventAcked
	case errors.Is(err, ErrUnreadable):
		return wakebelltype.EventDead
	case IsRejected(err) && h.set.discardRejected, h.set.queue != nil && h.set.queue.finalErrors && !IsRejected(err):
		return wakebelltype.EventDiscarded
	case IsRejected(err), !h.set.retryOnExpiry && d.Failures+1 >= d.MaxFailures:
		return wakebelltype.EventDead
	default:
		return wakebelltype.EventRetried
	}
}
