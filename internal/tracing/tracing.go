// Package tracing makes the spans of what is scheduled, published and delivered, and
// carries their contexts in headers.
package tracing

import (
	"context"
	"reflect"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope names the instrumentation.
const scope = "github.com/wakebell/wakebell"

// Config configures a Tracer.
type Config struct {
	Provider   trace.TracerProvider          // nil: the global one, also if it is set later
	Propagator propagation.TextMapPropagator // nil: W3C trace context

	// Child makes a delivery a child of the span that scheduled it, where it would
	// otherwise begin a trace that links to it.
	Child bool
}

// Tracer makes spans. A nil Tracer makes none.
type Tracer struct {
	cfg     Config
	current atomic.Pointer[tracerOf]
}

// tracerOf is the tracer of a provider; nil if the provider records nothing.
type tracerOf struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer.
func New(c Config) *Tracer {
	if c.Propagator == nil {
		c.Propagator = propagation.TraceContext{}
	}
	return &Tracer{cfg: c}
}

// unset is the global provider while no program has set one, or nil if one was set
// before this package was initialized. Recognizing it costs nothing, and starting its
// spans would.
var unset = func() trace.TracerProvider {
	p := otel.GetTracerProvider()
	//nolint:forbidigo // no context exists when the package is initialized
	if _, span := p.Tracer(scope).Start(context.Background(), "probe"); span.SpanContext().IsValid() {
		return nil
	}
	return p
}()

// tracer returns the tracer in force; nil if nothing is recorded.
func (t *Tracer) tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	provider := t.cfg.Provider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	if known := t.current.Load(); known != nil && known.provider == provider {
		return known.tracer
	}
	return t.of(provider)
}

// of returns the tracer of a provider, and stores it.
func (t *Tracer) of(provider trace.TracerProvider) (of trace.Tracer) {
	defer safe("a tracer provider")
	found := &tracerOf{provider: provider}
	if _, off := provider.(noop.TracerProvider); !off && provider != unset {
		found.tracer = provider.Tracer(scope)
	}
	if reflect.ValueOf(provider).Comparable() {
		t.current.Store(found)
	}
	return found.tracer
}

// On reports whether spans are recorded, or may be if they are sampled.
func (t *Tracer) On() bool { return t.tracer() != nil }

// Carries reports whether a call with this context has a span context for headers.
func (t *Tracer) Carries(ctx context.Context) bool {
	return t != nil && (t.tracer() != nil || trace.SpanContextFromContext(ctx).IsValid())
}

// Inject returns the headers that carry the span of ctx to another process; nil if
// there is none.
func (t *Tracer) Inject(ctx context.Context) (headers map[string]string) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	defer safe("a propagator")
	carrier := propagation.MapCarrier{}
	t.cfg.Propagator.Inject(ctx, carrier)
	return carrier
}

// Extract returns ctx with the span of another process as the parent of the next.
func (t *Tracer) Extract(ctx context.Context, headers map[string]string) (with context.Context) {
	if with = ctx; t == nil || len(headers) == 0 {
		return ctx
	}
	defer safe("a propagator")
	return t.cfg.Propagator.Extract(ctx, propagation.MapCarrier(headers))
}

// end ends a span with the error of what it covers.
func end(span trace.Span, err error) {
	defer safe("a span processor")
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, clip(err.Error()))
		span.SetAttributes(errorType.String(typeOf(err)))
	}
	span.End()
}
