package stacktest

import (
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// Spans is a provider that exports to memory.
type Spans struct {
	*sdk.TracerProvider
	Memory *tracetest.InMemoryExporter
}

// NewSpans returns a provider that keeps its spans in memory.
func NewSpans() Spans {
	memory := tracetest.NewInMemoryExporter()
	return Spans{sdk.NewTracerProvider(sdk.WithSyncer(memory)), memory}
}

// Named returns the spans that have ended with this name.
func (s Spans) Named(name string) (found []tracetest.SpanStub) {
	for _, span := range s.Memory.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

// Await waits for n spans with this name.
func (s Spans) Await(t *testing.T, name string, n int) []tracetest.SpanStub {
	t.Helper()
	Eventually(t, func() bool { return len(s.Named(name)) == n }, name)
	return s.Named(name)
}

// AttributesOf returns the attributes of a span by their names.
func AttributesOf(span tracetest.SpanStub) map[string]any {
	m := map[string]any{}
	for _, a := range span.Attributes {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}
