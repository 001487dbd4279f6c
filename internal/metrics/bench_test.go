package metrics

import (
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/wakebell/wakebell/internal/meter"
)

// BenchmarkDelivery is what a delivery pays: two readings of the clock and two
// records.
func BenchmarkDelivery(b *testing.B) {
	m := New(Options{Provider: sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))})
	h := m.Handler("invoices", false)
	b.ReportAllocs()
	cpu, n := meter.ProcessCPU(), 0
	for b.Loop() {
		n++
		began := time.Now()
		run := h.Began(began)
		h.Late(time.Since(began), began)
		h.Ended(run, Handled)
	}
	b.ReportMetric(float64(meter.ProcessCPU()-cpu)/float64(n), "cpu-ns/op") // the process's own, not the machine's
}
