package wakebell_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	metrics "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleNew() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	_, err := wakebell.New(actorSystem(), quietly(server.Client()), wakebell.Config{
		DrainTimeout: -time.Second, // no drain
		Handlers:     []wakebell.Handler{wakebell.Handle(Invoices, pay, wakebell.MaxConcurrent(0))},
	})
	fmt.Println(errors.Is(err, wakebell.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// Handlers[0] (topic "invoices"): invalid argument: MaxConcurrent: 0 is not within 1 and 10000
}

func pay(context.Context, wakebell.Timer[Invoice]) error { return nil }

func ExampleSystem_Run() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	sys, err := wakebell.New(actorSystem(), quietly(server.Client()), wakebell.Config{})
	check(err)
	// In a program: signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	fmt.Println(sys.Run(ctx)) // starts, waits until ctx ends, drains
	// Output: <nil>
}

func ExampleSystem_Start() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	sys, err := wakebell.New(actorSystem(), quietly(server.Client()), wakebell.Config{})
	check(err)
	ctx := context.Background()
	fmt.Println(sys.Connection().Redis() != nil)
	fmt.Println(sys.Start(ctx))
	fmt.Println(sys.Start(ctx))
	fmt.Println(sys.Stop(), sys.Stop()) // a second Stop returns the same
	// Output:
	// true
	// <nil>
	// system was started before
	// <nil> <nil>
}

func ExampleSystem_Add() {
	receipts := wakebell.NewTopic[string]("receipts")
	printed := make(chan struct{})
	run(wakebell.Config{}, func(sys *wakebell.System) {
		ctx := context.Background()
		check(sys.Add(ctx, wakebell.Handle(receipts, func(_ context.Context, t wakebell.Timer[string]) error {
			defer close(printed)
			fmt.Println("print", t.Body)
			return nil
		})))
		_, err := receipts.Schedule(ctx, sys.Client(), "thank you")
		check(err)
		<-printed
		check(sys.Remove(receipts.Name())) // drained; its timers stay in Redis
		fmt.Println(sys.Remove(receipts.Name()))
	})
	// Output:
	// print thank you
	// no such topic: "receipts"
}

func ExampleSystem_Remove() {
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, pay)}}, func(sys *wakebell.System) {
		check(sys.Remove("invoices"))
		bill(sys.Client(), "inv-42") // for other nodes
		fmt.Println(errors.Is(sys.PauseLocal("invoices"), wakebell.ErrNoTopic))
	})
	// Output: true
}

func ExampleSystem_RetuneLocal() {
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, pay)}}, func(sys *wakebell.System) {
		fmt.Println(sys.RetuneLocal("invoices", wakebell.MaxConcurrent(50), wakebell.LeaseTTL(time.Minute)))
		fmt.Println(errors.Is(sys.RetuneLocal("invoices", wakebell.MaxConcurrent(0)), wakebell.ErrInvalid))
	})
	// Output:
	// <nil>
	// true
}

func ExampleSystem_PauseLocal() {
	paid := make(chan string)
	handle := func(_ context.Context, t wakebell.Timer[Invoice]) error { paid <- t.ID; return nil }
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, handle)}}, func(sys *wakebell.System) {
		check(sys.PauseLocal("invoices")) // only on this node; Client.Pause applies to all nodes
		bill(sys.Client(), "inv-42")
		check(sys.ResumeLocal("invoices"))
		fmt.Println(<-paid)
	})
	// Output: inv-42
}

func ExampleSystem_Counters() {
	paid := make(chan struct{})
	handle := func(context.Context, wakebell.Timer[Invoice]) error { close(paid); return nil }
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, handle)}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-paid
		check(sys.Stop())
		counters := sys.Counters()["invoices"]
		fmt.Println("delivered:", counters.Delivered, "acked:", counters.Acked)
	})
	// Output: delivered: 1 acked: 1
}

func ExampleClient_Pause() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		order, err := c.Pause(ctx, "invoices", "ada", "the bank is down") // on all nodes
		check(err)
		fmt.Println(order.Paused, order.PausedBy, order.Reason)
		order, err = c.Resume(ctx, "invoices")
		check(err)
		fmt.Println(order.Paused)
	})
	// Output:
	// true ada the bank is down
	// false
}

func ExampleClient_PauseUntil() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		order, err := c.PauseUntil(ctx, "invoices", wakebelltype.Pause{By: "ada", Reason: "the bank is down", For: 2 * time.Hour})
		check(err)
		fmt.Println(order.Paused, order.PausedUntil.Sub(order.PausedAt)) // it ends without Resume
	})
	// Output: true 2h0m0s
}

func ExampleClient_Retune() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := c.Retune(ctx, "invoices", wakebelltype.Settings{MaxConcurrent: 2}) // on all nodes
		check(err)
		order, err := c.Control(ctx, "invoices")
		check(err)
		fmt.Println(order.Settings.MaxConcurrent)
	})
	// Output: 2
}

func ExampleSystem_Health() {
	handle := wakebell.Handle(Invoices, func(context.Context, wakebell.Timer[Invoice]) error { return nil })
	run(wakebell.Config{Handlers: []wakebell.Handler{handle}}, func(sys *wakebell.System) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // without a deadline, Health waits 1 s
		defer cancel()
		h := sys.Health(ctx)
		fmt.Println(h.Live, h.Ready, h.Problems, h.ClockSteps == wakebelltype.ClockSteps{})
		topic := h.Topics[0]
		fmt.Println(topic.Topic, topic.Running, topic.Err)
	})
	// Output:
	// true true [] true
	// invoices 0 <nil>
}

func ExampleSystem_HealthHandler() {
	run(wakebell.Config{}, func(sys *wakebell.System) {
		patient := http.TimeoutHandler(sys.HealthHandler(), 10*time.Second, "") // without a timeout, the handler waits 1 s
		server := httptest.NewServer(patient)
		defer server.Close()
		answer, err := http.Get(server.URL + "/readyz")
		check(err)
		check(answer.Body.Close())
		fmt.Println(answer.Status)
	})
	// Output: 200 OK
}

func ExampleWithReplicas() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := Invoices.Schedule(ctx, c, Invoice{"42", 995}, wakebell.ID("inv-42"),
			wakebell.WithReplicas(1, 100*time.Millisecond))
		var few *wakebelltype.ReplicasError // this Redis has no replicas; the timer is stored
		fmt.Println(errors.As(err, &few) && few.Got < few.Want, wakebell.Retryable(err))
	})
	// Output: true true
}

func ExampleRetryable() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := Invoices.Schedule(ctx, c, Invoice{}, wakebell.ID(""))
		fmt.Println(wakebell.Retryable(err)) // the cause has to be fixed first
	})
	// Output: false
}

// A reader of the SDK collects the metrics of docs/metrics.md. Programs use the
// exporter for Prometheus, or a periodic reader with an OTLP exporter.
func ExampleSystem_MeterProvider() {
	reader := metrics.NewManualReader()
	provider := metrics.NewMeterProvider(metrics.WithReader(reader))
	runWith(connection.Config{MeterProvider: provider}, wakebell.Config{}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-1")
		var collected metricdata.ResourceMetrics
		check(reader.Collect(context.Background(), &collected))
		for _, m := range collected.ScopeMetrics[0].Metrics {
			if m.Name == "messaging.client.sent.messages" {
				fmt.Println(m.Name, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
			}
		}
		fmt.Println(sys.MeterProvider() == provider)
	})
	// Output:
	// messaging.client.sent.messages 1
	// true
}

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
	runWith(connection.Config{TracerProvider: provider}, wakebell.Config{
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

func ExampleMiddleware_scheduleMiddleware() {
	reports, done := wakebell.NewTopic[string]("reports"), make(chan int)
	on := connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{compress}}
	runWith(on, wakebell.Config{
		Middleware: []wakebell.Middleware{decompress},
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
