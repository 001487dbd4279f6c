package tracing

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Delivered is a timer or message that a handler receives.
type Delivered struct {
	Topic, ID, CorrelationID string
	Attempt                  int
	Lateness                 time.Duration
	Size                     int // of the body, in bytes
	Headers                  []wakebelltype.Header

	// Hop are the headers of the process that passes the delivery on, such as the
	// node of a remote subscriber; empty: the delivery begins here. A span of that
	// process is the parent.
	Hop map[string]string
}

// Delivery is the span of a delivery. A nil Delivery is none.
type Delivery struct{ span trace.Span }

// Consumer makes the spans of the deliveries of a handler.
type Consumer struct {
	*Tracer
	start atomic.Pointer[start]
}

// Consumer returns a Consumer, which keeps what the spans of its topic have in common.
func (t *Tracer) Consumer() *Consumer { return &Consumer{Tracer: t} }

// start is how the spans of a topic start. It has the attributes that a sampler may
// need; a span that is not sampled costs no others.
type start struct {
	topic, name string
	child, root []trace.SpanStartOption
}

func (c *Consumer) startOf(topic string) *start {
	if s := c.start.Load(); s != nil && s.topic == topic {
		return s
	}
	s := &start{topic: topic, name: "process " + clip(topic), child: []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(messagingSystem.String(system), operationName.String("process"), operationType.String("process"),
			destinationName.String(clip(topic))),
	}}
	s.root = append(s.child[:len(s.child):len(s.child)], trace.WithNewRoot())
	c.start.Store(s)
	return s
}

// Deliver starts the span of a delivery, and returns the context of its handler.
func (c *Consumer) Deliver(ctx context.Context, d *Delivered) (in context.Context, delivery *Delivery) {
	in = ctx
	defer safe("starting a span")
	tracer := c.tracer()
	if tracer == nil {
		return ctx, nil
	}
	of := c.startOf(d.Topic)
	options := of.child
	var link trace.Link
	switch {
	case len(d.Hop) > 0:
		ctx = c.Extract(ctx, d.Hop)
	case len(d.Headers) > 0:
		ctx = c.cfg.Propagator.Extract(ctx, read(d.Headers))
		if c.cfg.Child {
			break
		}
		options, link.SpanContext = of.root, trace.SpanContextFromContext(ctx)
		if link.SpanContext.IsSampled() { // a sampler may follow it
			options = append(options[:len(options):len(options)], trace.WithLinks(link))
		}
	}
	ctx, span := tracer.Start(ctx, of.name, options...)
	if span.IsRecording() {
		if link.SpanContext.IsValid() && !link.SpanContext.IsSampled() {
			span.AddLink(link)
		}
		span.SetAttributes(
			messageID.String(clip(d.ID)), conversationID.String(clip(d.CorrelationID)), messageBodySize.Int(d.Size),
			attemptAttribute.Int(d.Attempt), lateness.Float64(d.Lateness.Seconds()))
	}
	return ctx, &Delivery{span}
}

// DeliverBatch starts the span of a batch of deliveries of one topic, which links to the
// spans that scheduled them, and returns the context of the call.
func (c *Consumer) DeliverBatch(
	ctx context.Context, topic string, size int, headers func(i int) []wakebelltype.Header,
) (in context.Context, delivery *Delivery) {
	in = ctx
	defer safe("starting a span")
	tracer := c.tracer()
	if tracer == nil {
		return ctx, nil
	}
	of := c.startOf(topic)
	options := append(of.root[:len(of.root):len(of.root)], trace.WithAttributes(batchCount.Int(size)))
	links := make([]trace.Link, 0, size)
	for i := range size {
		if span := c.spanIn(headers(i)); span.IsValid() {
			links = append(links, trace.Link{SpanContext: span})
		}
	}
	ctx, span := tracer.Start(ctx, of.name, append(options, trace.WithLinks(links...))...)
	return ctx, &Delivery{span}
}

// In returns ctx with the span as the parent of spans that start in it.
func (d *Delivery) In(ctx context.Context) context.Context {
	if d == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, d.span)
}

// End ends the span with the outcome of the delivery, and the error of the handler.
func (d *Delivery) End(what Outcome, err error) {
	if d == nil {
		return
	}
	defer safe("a span processor")
	if d.span.IsRecording() {
		d.span.SetAttributes(outcome.String(string(what)))
	}
	end(d.span, err)
}

// Crash ends the span of a handler that panicked.
func (d *Delivery) Crash() {
	if d == nil {
		return
	}
	defer safe("a span processor")
	if d.span.IsRecording() {
		d.span.SetAttributes(outcome.String(string(Crashed)), errorType.String("panic"))
		d.span.SetStatus(codes.Error, "handler crashed")
	}
	d.span.End()
}

// Firing is the span of a run of a recurring schedule. The zero value is none.
type Firing struct{ span trace.Span }

// Fire starts the span of a run, which links to the call that stored the schedule, and
// returns the headers of the run.
func (t *Tracer) Fire(
	ctx context.Context, name, topic string, at time.Time, number int64, stored map[string]string,
) (headers map[string]string, firing Firing) {
	headers = stored
	defer safe("starting a span")
	tracer := t.tracer()
	if tracer == nil {
		if headers := t.Inject(ctx); headers != nil {
			return headers, Firing{}
		}
		return stored, Firing{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		messagingSystem.String(system), operationName.String("fire"), operationType.String("send"), destinationName.String(clip(topic)),
		schedule.String(clip(name)), run.Int64(number), due.String(at.UTC().Format(time.RFC3339Nano)),
	)}
	//nolint:forbidigo // the span of another process, and nothing of a caller's
	if put := trace.SpanContextFromContext(t.Extract(context.Background(), stored)); put.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: put}))
	}
	ctx, span := tracer.Start(ctx, "fire "+clip(name), options...)
	return t.Inject(ctx), Firing{span}
}

// End ends the span of a run that was fired. A span that is not ended is not exported.
func (f Firing) End() {
	if f.span != nil {
		end(f.span, nil)
	}
}
