package tracing

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Sending is the span of a call that schedules or publishes. The zero value is none.
type Sending struct{ span trace.Span }

// End ends the span with the error of the call.
func (s Sending) End(err error) {
	if s.span != nil {
		end(s.span, err)
	}
}

// Send starts the span of a call that stores out, and returns its context.
func (t *Tracer) Send(ctx context.Context, operation string, out []*wakebelltype.Outgoing) (in context.Context, sending Sending) {
	in = ctx
	defer safe("starting a span")
	tracer := t.tracer()
	if tracer == nil || len(out) == 0 {
		return ctx, Sending{}
	}
	name := operation
	attributes := []attribute.KeyValue{
		messagingSystem.String(system), operationName.String(operation), operationType.String("send"), kind.String(string(out[0].Kind)),
	}
	if topic := out[0].Topic; !slices.ContainsFunc(out, func(o *wakebelltype.Outgoing) bool { return o.Topic != topic }) {
		topic = clip(topic)
		name += " " + topic
		attributes = append(attributes, destinationName.String(topic))
	}
	if len(out) > 1 {
		attributes = append(attributes, batchCount.Int(len(out)))
	} else {
		attributes = append(attributes, messageBodySize.Int(len(out[0].Body)))
		if out[0].ID != "" {
			attributes = append(attributes, messageID.String(clip(out[0].ID)))
		}
	}
	ctx, span := tracer.Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attributes...), trace.WithLinks(t.own(out)...))
	return ctx, Sending{span}
}

// own returns links to the spans that users have put into headers themselves.
func (t *Tracer) own(out []*wakebelltype.Outgoing) (links []trace.Link) {
	for _, o := range out {
		if !t.set(o) {
			continue
		}
		if span := t.spanIn(o.Headers); span.IsValid() {
			links = append(links, trace.Link{SpanContext: span})
		}
	}
	return links
}

// Stamp writes the span of ctx into the headers of those that have room for it and no
// span yet.
func (t *Tracer) Stamp(ctx context.Context, out []*wakebelltype.Outgoing, room func(*wakebelltype.Outgoing) bool) {
	defer safe("a propagator")
	span := t.Inject(ctx)
	keys := slices.Sorted(maps.Keys(span))
	for _, o := range out {
		if len(span) == 0 || t.set(o) || !room(o) {
			continue
		}
		for _, key := range keys {
			o.SetHeader(key, span[key])
		}
	}
}

// set reports whether a header of the propagator is set.
func (t *Tracer) set(o *wakebelltype.Outgoing) bool {
	return len(o.Headers) > 0 && slices.ContainsFunc(t.cfg.Propagator.Fields(), func(key string) bool {
		_, found := o.Header(key)
		return found
	})
}

// spanIn returns the span that headers carry.
func (t *Tracer) spanIn(headers []wakebelltype.Header) trace.SpanContext {
	//nolint:forbidigo // the span of another process, and nothing of a caller's
	return trace.SpanContextFromContext(t.cfg.Propagator.Extract(context.Background(), read(headers)))
}

// read reads headers.
type read []wakebelltype.Header

var _ propagation.TextMapCarrier = read{}

// Get implements propagation.TextMapCarrier.
func (r read) Get(key string) string {
	for _, h := range r {
		if h.Key == key {
			return h.Value
		}
	}
	return ""
}

// Set implements propagation.TextMapCarrier. It is not called: nothing is injected.
func (r read) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (r read) Keys() []string {
	keys := make([]string, len(r))
	for i, h := range r {
		keys[i] = h.Key
	}
	return keys
}
