package observe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltest"
)

func TestQueueMessagesCarrySpan(t *testing.T) {
	t.Parallel()
	traces, rdb := stacktest.NewSpans(), redistest.Shared(t)
	q := queue.New[string](redistest.Name(t))
	sys := stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{TracerProvider: traces}), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.HandleQueue(q, func(context.Context, wakebell.Timer[string]) error { return nil })},
	})
	_, err := q.Publish(t.Context(), sys.Client().Queues(), "hello")
	require.NoError(t, err)
	sent := traces.Named("publish " + q.Name())[0]
	stored := rdb.LIndex(t.Context(), q.Name()+"::pending", 0).Val()
	require.Contains(t, stored, `"payload":"hello","headers":{"traceparent":"00-`+sent.SpanContext.TraceID().String())
	require.True(t, strings.HasSuffix(stored, `-01"}}`), stored)
	stacktest.Launch(t, sys)
	delivered := traces.Await(t, "process "+q.Name(), 1)[0]
	require.Equal(t, sent.SpanContext.SpanID(), delivered.Links[0].SpanContext.SpanID())
	require.Contains(t, delivered.Attributes, attribute.String("wakebell.outcome", "ack"))
}

// TestRunsHaveSpansThatLinkToSchedule follows a recurring schedule from its Put over
// the scheduler to two deliveries.
func TestRunsHaveSpansThatLinkToSchedule(t *testing.T) {
	t.Parallel()
	traces, topic := stacktest.NewSpans(), wakebell.NewTopic[string]("reports")
	wakebelltest.RunWith(t, connection.Config{TracerProvider: traces}, wakebell.Config{
		Scheduler: &recurring.SchedulerConfig{},
		Handlers:  []wakebell.Handler{wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil })},
	}, func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, w.Client().Schedules().Put(t.Context(), topic.Recurring("daily", recurring.Rule{Every: 24 * time.Hour}, "x")))
		w.Advance(48 * time.Hour)
		ctx, span := traces.Tracer("test").Start(t.Context(), "by hand")
		_, err := w.Client().Schedules().RunNow(ctx, "daily")
		require.NoError(t, err)
		span.End()
		w.Advance(0)
	})
	put, fired, delivered := traces.Named("put reports")[0], traces.Named("fire daily"), traces.Named("process reports")
	require.Len(t, fired, 3)
	require.Len(t, delivered, 3)
	for i := range fired {
		require.Equal(t, put.SpanContext.SpanID(), fired[i].Links[0].SpanContext.SpanID())
		require.Equal(t, fired[i].SpanContext.SpanID(), delivered[i].Links[0].SpanContext.SpanID())
		require.Equal(t, int64(i+1), stacktest.AttributesOf(fired[i])["wakebell.run"])
	}
	require.Equal(t, traces.Named("by hand")[0].SpanContext.SpanID(), fired[2].Parent.SpanID())
	require.False(t, fired[1].Parent.IsValid())
}

// TestActorsReceiveSpan forwards a timer and reminds an actor: both messages have the
// span of their delivery.
func TestActorsReceiveSpan(t *testing.T) {
	t.Parallel()
	traces, topic, system := stacktest.NewSpans(), wakebell.NewTopic[string](redistest.Name(t)), stacktest.ActorSystem()
	got := make(chan map[string]string, 2)
	pid, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *messages.Lease:
			got <- m.GetTrace()
			c.Respond(m.Ack())
		case *messages.Reminder:
			got <- m.GetTrace()
			c.Respond(m.Ack())
		}
	}), "cart")
	require.NoError(t, err)
	sys, err := wakebell.New(system, conntest.New(t, redistest.Shared(t), connection.Config{Logger: stacktest.Quiet, TracerProvider: traces}), wakebell.Config{
		DrainTimeout: -1,
		Handlers:     []wakebell.Handler{wakebell.Forward(topic, wakebell.ToActor(pid))},
		Reminders:    &reminder.Config{Node: "n", Topic: topic.Name() + ".reminders"},
	})
	require.NoError(t, err)
	stacktest.Launch(t, sys)
	current := func() oteltrace.SpanID {
		ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier(stacktest.Receive(t, got)))
		return oteltrace.SpanContextFromContext(ctx).SpanID()
	}
	_, err = topic.Schedule(t.Context(), sys.Client(), "hello")
	require.NoError(t, err)
	require.Equal(t, current(), traces.Await(t, "process "+topic.Name(), 1)[0].SpanContext.SpanID())

	_, err = sys.Reminders().Set(t.Context(), reminder.Actor(pid), "wake", reminder.In(0), wrapperspb.String("up"))
	require.NoError(t, err)
	reminded := current()
	name := topic.Name() + ".reminders:n"
	span := traces.Await(t, "process "+name, 1)[0]
	require.Equal(t, reminded, span.SpanContext.SpanID())
	require.Equal(t, traces.Named("remind " + name)[0].SpanContext.SpanID(), span.Links[0].SpanContext.SpanID())
}

// hangs is an exporter that hangs until the test ends.
type hangs struct{ until chan struct{} }

func (h hangs) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	<-h.until
	return nil
}

func (hangs) Shutdown(context.Context) error { return nil }

// TestHangingExporterDelaysNoDelivery delivers more timers than the queue of spans has
// room for.
func TestHangingExporterDelaysNoDelivery(t *testing.T) {
	t.Parallel()
	exporter := hangs{make(chan struct{})}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(10), sdk.WithMaxExportBatchSize(5)))
	t.Cleanup(func() {
		close(exporter.until)
		require.NoError(t, provider.Shutdown(context.WithoutCancel(t.Context())))
	})
	topic, done := wakebell.NewTopic[string](redistest.Name(t)), make(chan struct{}, 200)
	sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, redistest.Shared(t), connection.Config{TracerProvider: provider}), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			done <- struct{}{}
			return nil
		})},
	}))
	for range cap(done) {
		_, err := topic.Schedule(t.Context(), sys.Client(), "x")
		require.NoError(t, err)
	}
	for range cap(done) {
		stacktest.Receive(t, done)
	}
}

// TestNoProviderTouchesNothing checks that a System without a provider, or with one that
// does nothing, leaves headers and contexts alone.
func TestNoProviderTouchesNothing(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]oteltrace.TracerProvider{"none": nil, "noop": noop.NewTracerProvider()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic, got := wakebell.NewTopic[string](redistest.Name(t)), make(chan wakebell.Headers, 1)
			sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, redistest.Shared(t), connection.Config{TracerProvider: provider}), wakebell.Config{
				Handlers: []wakebell.Handler{wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
					if !oteltrace.SpanContextFromContext(ctx).IsValid() {
						got <- timer.Headers
					}
					return nil
				})},
			}))
			_, err := topic.Schedule(t.Context(), sys.Client(), "x")
			require.NoError(t, err)
			require.Empty(t, stacktest.Receive(t, got))
		})
	}
}
