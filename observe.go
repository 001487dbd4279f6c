package wakebell

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/internal/usercode"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
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
func (h Handler) traced(ctx context.Context, tracer *tracing.Consumer, t Timer[[]byte], d delivered, fn HandlerFunc) (err error) {
	inner, span := tracer.Deliver(ctx, &tracing.Delivered{
		Topic: t.Topic, ID: t.ID, CorrelationID: t.CorrelationID, Attempt: t.Attempt, Lateness: t.Lateness(), Size: len(t.Body), Headers: t.Headers,
	})
	own := &deliverySpan{tracer: tracer}
	d.span = own
	t.delivery = d
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
		verdict = usercode.Checked(verdict)
		what := h.outcome(ctx, d.Delivery, verdict)
		if what == tracing.Snoozed { // no failure
			verdict = nil
		}
		span.End(what, verdict)
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
	case errors.Is(err, errReleased):
		return tracing.Released
	case h.snoozes(err):
		return tracing.Snoozed
	case err != nil && errors.Is(ended, ErrDraining):
		return tracing.Released
	case err == nil:
		return tracing.Ack
	default:
		return h.failure(d, err)
	}
}

// snoozes reports whether a verdict snoozes a timer. A message of a queue cannot be snoozed.
func (h Handler) snoozes(err error) bool {
	_, snoozed := SnoozeDelay(err)
	return snoozed && h.set.queue == nil && !IsRejected(err)
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

// tracedBatch returns fn in the span of a batch.
func (h Handler) tracedBatch(tracer *tracing.Consumer, fn batchFunc) batchFunc {
	return func(ctx context.Context, timers []Timer[[]byte]) (errs []error) {
		ctx, span := tracer.DeliverBatch(ctx, timers[0].Topic, len(timers), func(i int) []envelope.Header { return timers[i].Headers })
		for i := range timers {
			b := timers[i].delivery.(*inBatch)
			b.ctx, b.span = span.In(b.Context()), &deliverySpan{tracer: tracer}
		}
		returned := false
		defer func() {
			if !returned { // a panic goes on, with its stack
				span.Crash()
				return
			}
			span.End(h.outcomeOfBatch(timers, errs))
		}()
		errs = fn(ctx, timers)
		returned = true
		return errs
	}
}

// outcomeOfBatch returns what becomes of all deliveries of a batch, or tracing.Mixed,
// and the first error.
func (h Handler) outcomeOfBatch(timers []Timer[[]byte], errs []error) (all tracing.Outcome, failed error) {
	for i, t := range timers {
		b, err := t.delivery.(*inBatch), errs[i]
		if s := b.span.settled.Load(); s != nil {
			err = s.err
		}
		err = usercode.Checked(err)
		one := h.outcome(b.Delivery.Context(), b.Delivery, err)
		if failed == nil && one != tracing.Snoozed {
			failed = err
		}
		switch {
		case i == 0:
			all = one
		case one != all:
			all = tracing.Mixed
		}
	}
	return all, failed
}

// send stores drafts in a span and through the schedule middleware. A nil key is none.
func (c *Client) send(ctx context.Context, key *timers.Key, drafts []Draft) (stored []wakebelltype.Scheduled, err error) {
	for i := range drafts {
		if err := drafts[i].err; err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
	}
	err = outgoing.Each(ctx, c.on.Edge, "schedule", drafts, (*Draft).outgoing, (*Draft).apply, func(ctx context.Context, drafts []Draft) error {
		b, err := c.batch(drafts)
		if err == nil {
			stored, err = c.store.Write(ctx, key, b)
		}
		return err
	})
	return stored, err
}

// outgoing returns the draft as the schedule middleware sees it.
func (d *Draft) outgoing() *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingTimer, Topic: d.topic, ID: d.id,
		Body: d.env.Body, ContentType: d.env.ContentType, Headers: d.env.Headers,
	}
}

// apply sets what the schedule middleware may change.
func (d *Draft) apply(o *wakebelltype.Outgoing) {
	d.env.Body, d.env.ContentType, d.env.Headers = o.Body, o.ContentType, o.Headers
}

// MeterProvider returns connection.Config.MeterProvider, or the global provider, for what
// measures beside the System.
func (s *System) MeterProvider() metric.MeterProvider {
	if s.on.MeterProvider == nil {
		return otel.GetMeterProvider()
	}
	return s.on.MeterProvider
}

// measured returns a Handle that records how late and for how long a handler runs.
func measured(h *metrics.Handler, handle poller.Handle) poller.Handle {
	if h == nil {
		return handle
	}
	return func(ctx context.Context, d *poller.Delivery) (o poller.Outcome) {
		if !h.Measures() {
			return handle(ctx, d)
		}
		began, result := time.Now(), metrics.Crashed
		if d.Claims == 1 && !d.Snoozed {
			h.Late(d.Lateness()+d.Waited(began), began)
		}
		run := h.Began(began)
		defer func() { h.Ended(run, result) }()
		o = handle(ctx, d)
		result = o.Result()
		return o
	}
}

// measuredBatch is measured for a handler of batches.
func measuredBatch(h *metrics.Handler, handle poller.HandleBatch) poller.HandleBatch {
	if h == nil {
		return handle
	}
	return func(ctx context.Context, batch []*poller.Delivery) (outcomes []poller.Outcome) {
		if !h.Measures() {
			return handle(ctx, batch)
		}
		began := time.Now()
		h.Batch(len(batch))
		for _, d := range batch {
			if d.Claims == 1 && !d.Snoozed {
				h.Late(d.Lateness()+d.Waited(began), began)
			}
		}
		run := h.Began(began)
		defer func() {
			results := make([]metrics.Result, len(batch))
			for i := range batch {
				results[i] = metrics.Crashed
				if outcomes != nil {
					results[i] = outcomes[i].Result()
				}
			}
			h.Ended(run, results...)
		}()
		return handle(ctx, batch)
	}
}

// observe reports the node to the metrics until the returned function is called.
func (s *System) observe(runtime *actors.Runtime) (end func()) {
	node := metrics.Node{Version: moduleVersion(), Counters: runtime.Counters, Outages: runtime.Outages, Queues: s.queueBacklog, Gates: s.gateStates}
	node.IsQueue = func(name string) bool { return s.queueNamed(name) != nil }
	node.RecordsFailed = func() (int64, int64) { return s.client.store.Timers().Audit.Failed(), runtime.RecordsFailed() }
	node.Backlog = func(ctx context.Context) ([]metrics.Backlog, error) {
		if s.on.MetricShards {
			return s.store.Backlog(ctx, s.on.Prefix)
		}
		return s.shards.Backlog(ctx, s.on.Prefix)
	}
	schedules := schedulestore.New(s.shards)
	node.Schedules = func(ctx context.Context) (metrics.Schedules, error) {
		a, err := schedules.Attendance(ctx)
		return metrics.Schedules{Count: a.Schedules, Beats: a.Beats, Overdue: a.Overdue}, err
	}
	return s.on.Metrics.Observe(node)
}

// queueBacklog reads the queues that are registered, and those that this node handles.
func (s *System) queueBacklog(ctx context.Context) ([]metrics.Queue, error) {
	var own []*queuestore.Queue
	s.queues.Range(func(_, value any) bool {
		own = append(own, value.(*queuestore.Queue))
		return true
	})
	return queuestore.Backlog(ctx, s.store, s.on.Prefix, own)
}

// maxGates bounds the gates that are read for the metrics.
const maxGates = 1000

// gateStates reads the gates that are in use, the first by name.
func (s *System) gateStates(ctx context.Context) (all []metrics.GateState, err error) {
	for g, err := range s.gates.List(ctx, wakebelltype.Page{Limit: maxGates}) {
		if err != nil {
			return nil, err
		}
		state := metrics.GateState{Name: g.Name, Waiting: int64(g.Waiting)}
		if !g.Since.IsZero() {
			state.Held = max(g.Now.Sub(g.Since), 0)
		}
		all = append(all, state)
	}
	return all, nil
}
