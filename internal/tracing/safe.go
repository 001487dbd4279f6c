package tracing

import (
	"fmt"

	"go.opentelemetry.io/otel"
)

// Span processors, samplers, exporters and propagators are user code, and a span is never
// worth a delivery: where one of them panics, there is no span, and OpenTelemetry's handler
// of errors learns why. Each exported function that calls them defers safe.

// safe ends a panic of what the user has configured.
func safe(what string) {
	if reason := recover(); reason != nil {
		report(fmt.Errorf("wakebell: panic in %s: %v", what, reason))
	}
}

// report passes an error to the handler of errors, which is user code as well.
func report(err error) {
	defer func() { _ = recover() }() // nothing is left that could say it
	otel.Handle(err)
}
