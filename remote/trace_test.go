package remote_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// memory returns a provider that exports to memory, and a function that waits for the
// span with a name.
func memory(t *testing.T) (*sdk.TracerProvider, func(name string) tracetest.SpanStub) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	return sdk.NewTracerProvider(sdk.WithSyncer(exporter)), func(name string) (found tracetest.SpanStub) {
		t.Helper()
		eventually(t, func() bool {
			for _, span := range exporter.GetSpans() {
				if span.Name == name {
					found = span
					return true
				}
			}
			return false
		}, name)
		return found
	}
}

func dialWith(t *testing.T, n *node, cfg connection.Config) *remote.Client {
	t.Helper()
	// A stall must not end the link.
	c, err := remote.Dial(t.Context(), n.address, conntest.WithoutRedis(t, cfg), remote.DialConfig{DeadLink: time.Minute})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestTraceCrossesNetwork has a span around a remote schedule call, the node's spans
// of the call and of the delivery, and that of the subscriber.
func TestTraceCrossesNetwork(t *testing.T) {
	t.Parallel()
	atNode, nodeSpan := memory(t)
	atClient, clientSpan := memory(t)
	n := &node{log: &lines{}, topic: wakebell.NewTopic[string](redistest.Name(t)), conn: connection.Config{TracerProvider: atNode}}
	n.start(t, remote.Config{}, wakebell.Config{})
	c := dialWith(t, n, connection.Config{TracerProvider: atClient})

	ctx, request := atClient.Tracer("test").Start(t.Context(), "POST /orders")
	_, err := n.topic.Schedule(ctx, c, "hello", wakebell.ID("a"))
	require.NoError(t, err)
	request.End()
	inside := make(chan string, 1)
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(ctx context.Context, _ *messages.Lease) error {
		inside <- trace.SpanContextFromContext(ctx).SpanID().String()
		return nil
	})
	current := receive(t, inside)

	name := n.topic.Name()
	sent, stored := clientSpan("schedule "+name), nodeSpan("schedule "+name)
	require.Equal(t, clientSpan("POST /orders").SpanContext.SpanID(), sent.Parent.SpanID())
	require.Equal(t, sent.SpanContext.SpanID(), stored.Parent.SpanID())
	delivered, handled := nodeSpan("process "+name), clientSpan("process "+name)
	require.Equal(t, stored.SpanContext.SpanID(), delivered.Links[0].SpanContext.SpanID())
	require.Equal(t, delivered.SpanContext.SpanID(), handled.Parent.SpanID())
	require.Equal(t, delivered.SpanContext.TraceID(), handled.SpanContext.TraceID())
	require.Equal(t, handled.SpanContext.SpanID().String(), current)
}

// TestTraceFromRequestToSubscriberDaysLater follows a request: its handler schedules a
// timer, whose handler schedules another three days later, which a remote subscriber
// handles. The days pass in virtual time; the second timer is then moved to a real
// Redis. A goroutine that waits for a socket is not durably blocked, so virtual time
// would stand still as long as a node and a client have a connection.
func TestTraceFromRequestToSubscriberDaysLater(t *testing.T) {
	t.Parallel()
	provider, span := memory(t)
	first, second := wakebell.NewTopic[string]("first"), wakebell.NewTopic[string]("second")
	var payload string
	var failed error // of the request
	var w *wakebelltest.World
	wakebelltest.RunWith(t, connection.Config{TracerProvider: provider}, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(first, func(ctx context.Context, timer wakebell.Timer[string]) error {
			_, err := second.Schedule(ctx, w.Client(), timer.Body, wakebell.ID("a"))
			return err
		})},
	}, func(t *testing.T, world *wakebelltest.World) {
		w = world
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx, request := provider.Tracer("test").Start(r.Context(), "POST /orders")
			defer request.End()
			_, failed = first.Schedule(ctx, w.Client(), "order", wakebell.In(72*time.Hour))
		}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil))
		require.NoError(t, failed)
		w.Advance(72 * time.Hour)
		payload = w.Redis().HGet(t.Context(), "timers_payloads:second", "a").Val()
	})

	n := serve(t, remote.Config{})
	c := dialWith(t, n, connection.Config{TracerProvider: provider})
	redistest.PutTimer(t, redistest.Shared(t), n.topic.Name(), "a", []byte(payload), 1)
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error { return nil })

	handled := span("process " + n.topic.Name())
	next, delivered, sent := span("schedule second"), span("process first"), span("schedule first")
	require.Equal(t, next.SpanContext.SpanID(), handled.Links[0].SpanContext.SpanID())
	require.Equal(t, delivered.SpanContext.SpanID(), next.Parent.SpanID())
	require.Equal(t, sent.SpanContext.SpanID(), delivered.Links[0].SpanContext.SpanID())
	require.Equal(t, span("POST /orders").SpanContext.SpanID(), sent.Parent.SpanID())
	require.Equal(t, 72*time.Hour, delivered.StartTime.Sub(sent.StartTime).Round(time.Minute))
}

// TestSubscriberLinksToScheduleIfNodeMakesNoSpan has a node without a provider.
func TestSubscriberLinksToScheduleIfNodeMakesNoSpan(t *testing.T) {
	t.Parallel()
	provider, span := memory(t)
	n := serve(t, remote.Config{})
	c := dialWith(t, n, connection.Config{TracerProvider: provider})
	q := queue.New[string](redistest.Name(t) + ".queue")
	_, err := q.Publish(t.Context(), c.Queues(), "hello")
	require.NoError(t, err)
	subscribe(t, c, remote.Subscription{Queue: q.Keys(), Name: "s"}, func(context.Context, *messages.Lease) error { return nil })
	handled := span("process " + q.Name())
	require.Equal(t, span("publish "+q.Name()).SpanContext.SpanID(), handled.Links[0].SpanContext.SpanID())
}

// sealed is a middleware that stands for encryption: its bytes differ in each call.
func sealed(calls *byte) wakebelltype.ScheduleMiddleware {
	return func(next wakebelltype.ScheduleFunc) wakebelltype.ScheduleFunc {
		return func(ctx context.Context, out []*wakebelltype.Outgoing) error {
			*calls++
			for _, o := range out {
				o.Body = append([]byte{'0' + *calls}, bytes.ToUpper(o.Body)...)
				o.SetHeader("sealed", string(o.Kind))
			}
			return next(ctx, out)
		}
	}
}

// TestScheduleMiddlewareRunsInProcessOfClient checks that a node stores what the
// middleware of its peer made, without its own, and that an idempotency key does not
// cover it.
func TestScheduleMiddlewareRunsInProcessOfClient(t *testing.T) {
	t.Parallel()
	var here, there byte
	n := &node{
		log: &lines{}, topic: wakebell.NewTopic[string](redistest.Name(t)),
		conn: connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{sealed(&there)}},
	}
	n.start(t, remote.Config{}, wakebell.Config{})
	c := dialWith(t, n, connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{sealed(&here)}})
	stored := func(id string) (string, map[string]string) {
		_, content, err := n.Client().Get(t.Context(), n.topic.Name(), id)
		require.NoError(t, err)
		return string(content.Body), content.Headers.Map()
	}

	ctx := remote.WithKey(t.Context(), "once")
	for range 2 {
		_, err := n.topic.Schedule(ctx, c, "secret", wakebell.ID("a"), wakebell.In(time.Hour))
		require.NoError(t, err)
	}
	body, headers := stored("a")
	require.Equal(t, "1SECRET", body)
	require.Equal(t, map[string]string{"sealed": "timer"}, headers)
	for range 2 {
		_, err := c.Schedule(remote.WithKey(t.Context(), "both"),
			n.topic.Draft("b", wakebell.ID("b"), wakebell.In(time.Hour)), n.topic.Draft("c", wakebell.ID("c"), wakebell.In(time.Hour)))
		require.NoError(t, err)
	}
	body, _ = stored("c")
	require.Equal(t, "3C", body)

	q := queue.New[string](redistest.Name(t) + ".queue")
	_, err := q.Publish(t.Context(), c.Queues(), "secret")
	require.NoError(t, err)
	for m, err := range n.Client().Queues().Messages(t.Context(), q.Keys(), false, wakebelltype.Page{}) {
		require.NoError(t, err)
		require.Equal(t, "5SECRET", string(m.Payload))
	}
	require.NoError(t, c.Schedules().Put(t.Context(), n.topic.Recurring(n.topic.Name(), recurring.Rule{Every: time.Hour}, "secret")))
	dump, err := n.Client().Schedules().Export(t.Context(), n.topic.Name())
	require.NoError(t, err)
	require.Contains(t, string(dump.Wakebell), `"body":"NlNFQ1JFVA=="`) // 6SECRET
	require.NoError(t, n.Client().Schedules().Delete(t.Context(), n.topic.Name()))
	require.Zero(t, there)
}
