package observe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
)

// TestTraceCrossesDays has a span that schedules, a delivery three days later that
// begins a trace of its own with a link to it, and another that this one schedules.
func TestTraceCrossesDays(t *testing.T) {
	t.Parallel()
	traces := stacktest.NewSpans()
	first, second := wakebell.NewTopic[string]("first"), wakebell.NewTopic[string]("second")
	var w *wakebelltest.World
	wakebelltest.RunWith(t, connection.Config{TracerProvider: traces}, wakebell.Config{
		Handlers: []wakebell.Handler{
			wakebell.Handle(first, func(ctx context.Context, timer wakebell.Timer[string]) error {
				require.Len(t, timer.Headers.Map()["traceparent"], 55)
				_, err := second.Schedule(ctx, w.Client(), "then", wakebell.ID("b"))
				return err
			}),
			wakebell.Handle(second, func(ctx context.Context, timer wakebell.Timer[string]) error {
				require.True(t, oteltrace.SpanContextFromContext(ctx).IsValid())
				return wakebell.Reject(errors.New("no"))
			}),
		},
	}, func(t *testing.T, world *wakebelltest.World) {
		w = world
		ctx, request := traces.Tracer("test").Start(t.Context(), "POST /orders")
		_, err := first.Schedule(ctx, w.Client(), "body", wakebell.ID("a"), wakebell.In(72*time.Hour), wakebell.CorrelationID("order-7"))
		require.NoError(t, err)
		request.End()
		w.Advance(72 * time.Hour)
	})

	sent := traces.Named("schedule first")[0]
	require.Equal(t, traces.Named("POST /orders")[0].SpanContext.SpanID(), sent.Parent.SpanID())
	require.Equal(t, oteltrace.SpanKindProducer, sent.SpanKind)
	require.Equal(t, map[string]any{
		"messaging.system": "wakebell", "messaging.operation.name": "schedule", "messaging.operation.type": "send",
		"messaging.destination.name": "first", "messaging.message.id": "a", "messaging.message.body.size": int64(4), "wakebell.kind": "timer",
	}, stacktest.AttributesOf(sent))

	delivered := traces.Named("process first")[0]
	require.Equal(t, oteltrace.SpanKindConsumer, delivered.SpanKind)
	require.False(t, delivered.Parent.IsValid())
	require.NotEqual(t, sent.SpanContext.TraceID(), delivered.SpanContext.TraceID())
	require.Equal(t, sent.SpanContext.SpanID(), delivered.Links[0].SpanContext.SpanID())
	attributes := stacktest.AttributesOf(delivered)
	require.Less(t, attributes["wakebell.lateness"], 1.0)
	delete(attributes, "wakebell.lateness")
	require.Equal(t, map[string]any{
		"messaging.system": "wakebell", "messaging.operation.name": "process", "messaging.operation.type": "process",
		"messaging.destination.name": "first", "messaging.message.id": "a", "messaging.message.conversation_id": "order-7",
		"messaging.message.body.size": int64(4), "wakebell.attempt": int64(1), "wakebell.outcome": "ack",
	}, attributes)

	next := traces.Named("schedule second")[0]
	require.Equal(t, delivered.SpanContext.SpanID(), next.Parent.SpanID())
	last := traces.Named("process second")[0]
	require.Equal(t, next.SpanContext.SpanID(), last.Links[0].SpanContext.SpanID())
	require.Equal(t, "rejected", stacktest.AttributesOf(last)["wakebell.outcome"])
	require.Equal(t, codes.Error, last.Status.Code)
	require.Equal(t, "no", last.Status.Description)
}

// fastStreamEnvelope has the headers that FastStream's TelemetryMiddleware adds.
func fastStreamEnvelope(traceparent, tracestate string) string {
	header := func(key, value string) string {
		return string([]byte{0, byte(len(key))}) + key + string([]byte{0, byte(len(value))}) + value
	}
	headers := header("correlation_id", "c") + header("content-type", "text/plain") + header("traceparent", traceparent) + header("tracestate", tracestate)
	return "\x89BIN\r\n\x1a\n\x00\x01\x00\x00\x00\x12\x00\x00\x00" + string([]byte{byte(20 + len(headers))}) + "\x00\x04" + headers + "hello"
}

func TestTraceCrossesFromFastStream(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, child := range map[string]bool{"link": false, "child": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			traces, topic, rdb := stacktest.NewSpans(), wakebell.NewTopic[string](redistest.Name(t)), redistest.Shared(t)
			stacktest.Launch(t, stacktest.BuildOn(t, conntest.Switched(t, rdb, connection.Config{TracerProvider: traces}, opened.Switches{TraceAsChild: child}), wakebell.Config{
				Handlers: []wakebell.Handler{wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil })},
			}))
			stacktest.Peer{Rdb: rdb, Topic: topic.Name()}.Publish(t, "a", fastStreamEnvelope(parent, "vendor=1"), 1)
			span := traces.Await(t, "process "+topic.Name(), 1)[0]
			if child {
				require.Equal(t, "b7ad6b7169203331", span.Parent.SpanID().String())
				require.Equal(t, "0af7651916cd43dd8448eb211c80319c", span.SpanContext.TraceID().String())
				require.Empty(t, span.Links)
				return
			}
			require.False(t, span.Parent.IsValid())
			require.Equal(t, "b7ad6b7169203331", span.Links[0].SpanContext.SpanID().String())
			require.Equal(t, "vendor=1", span.Links[0].SpanContext.TraceState().String())
		})
	}
}

// TestHeaderOfUserIsKept schedules with a traceparent of its own. FastStream reads
// the same header.
func TestHeaderOfUserIsKept(t *testing.T) {
	t.Parallel()
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traces, topic := stacktest.NewSpans(), wakebell.NewTopic[string](redistest.Name(t))
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{TracerProvider: traces})
	_, err := c.Schedule(t.Context(),
		topic.Draft("x", wakebell.ID("own"), wakebell.In(time.Hour), wakebell.Header("traceparent", own)),
		topic.Draft("x", wakebell.ID("other"), wakebell.In(time.Hour)))
	require.NoError(t, err)
	span := traces.Named("schedule " + topic.Name())[0]
	require.Equal(t, "b7ad6b7169203331", span.Links[0].SpanContext.SpanID().String())
	require.Equal(t, int64(2), stacktest.AttributesOf(span)["messaging.batch.message_count"])
	for id, want := range map[string]string{
		"own": own, "other": "00-" + span.SpanContext.TraceID().String() + "-" + span.SpanContext.SpanID().String() + "-01",
	} {
		_, content, err := c.Get(t.Context(), topic.Name(), id)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"traceparent": want}, content.Headers.Map())
	}
}

// TestSpanOfCallerIsCarriedWithoutProvider has a span in the context, and a client
// without a provider.
func TestSpanOfCallerIsCarriedWithoutProvider(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{})
	ctx, span := stacktest.NewSpans().Tracer("test").Start(t.Context(), "a span")
	defer span.End()
	id, err := topic.Schedule(ctx, c, "x", wakebell.In(time.Hour))
	require.NoError(t, err)
	_, content, err := c.Get(t.Context(), topic.Name(), id)
	require.NoError(t, err)
	require.Contains(t, content.Headers.Map()["traceparent"], span.SpanContext().SpanID().String())
}

// TestOutcomeOfDelivery compares the attribute of each span with what the handler
// did.
func TestOutcomeOfDelivery(t *testing.T) {
	t.Parallel()
	traces, topic := stacktest.NewSpans(), wakebell.NewTopic[string](redistest.Name(t))
	running := make(chan struct{})
	sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, redistest.Shared(t), connection.Config{TracerProvider: traces}), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
			switch timer.Body {
			case "retried", "dead":
				return errors.New(timer.Body)
			case "settled":
				if err := timer.Settle(ctx, nil); err != nil {
					return err
				}
				return errors.New("ignored")
			case "crashed":
				panic(timer.Body)
			}
			close(running)
			<-ctx.Done()
			return nil
		}, wakebell.MaxAttempts(2), wakebell.RetryBackoff(time.Millisecond, time.Millisecond), wakebell.LeaseTTL(20*time.Second))}, // without the hint, the cancel is noticed within 7 s
	}))
	for _, body := range []string{"dead", "settled", "crashed", "cancelled"} {
		_, err := topic.Schedule(t.Context(), sys.Client(), body, wakebell.ID(body))
		require.NoError(t, err)
	}
	stacktest.Receive(t, running)
	_, err := topic.Cancel(t.Context(), sys.Client(), "cancelled")
	require.NoError(t, err)
	got := map[string]string{}
	for _, span := range traces.Await(t, "process "+topic.Name(), 5) {
		attributes := stacktest.AttributesOf(span)
		got[attributes["messaging.message.id"].(string)] += attributes["wakebell.outcome"].(string) + " "
		if attributes["messaging.message.id"] == "dead" {
			require.Equal(t, "_OTHER", attributes["error.type"])
		}
	}
	require.Equal(t, map[string]string{"dead": "retry dead ", "settled": "ack ", "crashed": "crashed ", "cancelled": "cancelled "}, got)
}

// TestSpanOfSnoozeIsNoError checks that a snooze, which is no failure, is none in a trace, also
// at the attempt that would be the last one.
func TestSpanOfSnoozeIsNoError(t *testing.T) {
	t.Parallel()
	traces, topic := stacktest.NewSpans(), wakebell.NewTopic[string]("first")
	calls := 0
	wakebelltest.RunWith(t, connection.Config{TracerProvider: traces}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			if calls++; calls == 1 {
				return wakebell.Snooze(time.Minute)
			}
			return nil
		}, wakebell.MaxAttempts(1)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		_, err := topic.Schedule(t.Context(), w.Client(), "body", wakebell.ID("a"))
		require.NoError(t, err)
		w.Advance(2 * time.Minute)
	})
	spans := traces.Named("process first")
	require.Len(t, spans, 2)
	require.Equal(t, "snoozed", stacktest.AttributesOf(spans[0])["wakebell.outcome"])
	require.Equal(t, codes.Unset, spans[0].Status.Code)
	require.Equal(t, "ack", stacktest.AttributesOf(spans[1])["wakebell.outcome"])
}
