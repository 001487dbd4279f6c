package wakebell_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"slices"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// followLinks samples a span that links to a sampled one, and all others as next does.
type followLinks struct{ next sdk.Sampler }

func (f followLinks) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	for _, l := range p.Links {
		if l.SpanContext.IsSampled() {
			return sdk.AlwaysSample().ShouldSample(p)
		}
	}
	return f.next.ShouldSample(p)
}

func (f followLinks) Description() string { return "FollowLinks" }

// The deliveries of sampled schedule calls are sampled, and 1 % of the others.
func ExampleConfig_tracing() {
	memory := tracetest.NewInMemoryExporter() // an OTLP exporter in a real program
	provider := sdk.NewTracerProvider(
		sdk.WithSyncer(memory),
		sdk.WithSampler(sdk.ParentBased(followLinks{sdk.TraceIDRatioBased(0.01)})))

	invoices, done := wakebell.NewTopic[string]("invoices"), make(chan bool)
	run(wakebell.Config{
		TracerProvider: provider,
		Handlers: []wakebell.Handler{wakebell.Handle(invoices, func(context.Context, wakebell.Timer[string]) error {
			close(done)
			return nil
		})},
	}, func(sys *wakebell.System) {
		request := sdk.NewTracerProvider().Tracer("shop") // samples everything
		ctx, span := request.Start(context.Background(), "POST /orders")
		_, err := invoices.Schedule(ctx, sys.Client(), "7")
		check(err)
		span.End()
		<-done
	})
	spans := memory.GetSpans()
	slices.SortFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	fmt.Println(spans[0].Name)
	fmt.Println(spans[1].Name, spans[1].Links[0].SpanContext.SpanID() == spans[0].SpanContext.SpanID())
	// Output:
	// schedule invoices
	// process invoices true
}

// compress is middleware for both sides: large bodies are stored compressed, and reach
// the handlers as they were.
func compress(next wakebelltype.ScheduleFunc) wakebelltype.ScheduleFunc {
	return func(ctx context.Context, out []*wakebelltype.Outgoing) error {
		for _, o := range out {
			if len(o.Body) < 1024 {
				continue
			}
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write(o.Body) // a Buffer takes everything
			_ = w.Close()
			o.Body = b.Bytes()
			o.SetHeader("content-encoding", "gzip")
		}
		return next(ctx, out)
	}
}

func decompress(next wakebell.HandlerFunc) wakebell.HandlerFunc {
	return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		if encoding, _ := t.Headers.Get("content-encoding"); encoding == "gzip" {
			r, err := gzip.NewReader(bytes.NewReader(t.Body))
			if err != nil {
				return wakebell.Reject(err)
			}
			if t.Body, err = io.ReadAll(r); err != nil {
				return wakebell.Reject(err)
			}
		}
		return next(ctx, t)
	}
}

func ExampleClientConfig_scheduleMiddleware() {
	reports, done := wakebell.NewTopic[string]("reports"), make(chan int)
	run(wakebell.Config{
		ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{compress}, // as in ClientConfig
		Middleware:         []wakebell.Middleware{decompress},
		Handlers: []wakebell.Handler{wakebell.Handle(reports, func(_ context.Context, t wakebell.Timer[string]) error {
			fmt.Println("stored:", len(t.Raw) < 100)
			done <- len(t.Body)
			return nil
		})},
	}, func(sys *wakebell.System) {
		_, err := reports.Schedule(context.Background(), sys.Client(), string(make([]byte, 10_000)))
		check(err)
		fmt.Println("handled:", <-done)
	})
	// Output:
	// stored: true
	// handled: 10000
}
