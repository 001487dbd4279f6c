package observe_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// seal stands for encryption: it changes each byte in place, and marks the body.
func seal(next wakebelltype.ScheduleFunc) wakebelltype.ScheduleFunc {
	return func(ctx context.Context, out []*wakebelltype.Outgoing) error {
		for _, o := range out {
			flip(o.Body)
			o.SetHeader("sealed", string(o.Kind)+" "+o.ContentType)
			o.ContentType = "application/octet-stream"
		}
		return next(ctx, out)
	}
}

// unseal is the inverse of seal.
func unseal(next wakebell.HandlerFunc) wakebell.HandlerFunc {
	return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		sealed, found := t.Headers.Get("sealed")
		if found {
			flip(t.Body)
			_, t.ContentType, _ = strings.Cut(sealed, " ")
		}
		return next(ctx, t)
	}
}

func flip(body []byte) {
	for i := range body {
		body[i] ^= 0xff
	}
}

// TestScheduleMiddlewareIsHonouredOnBothSides schedules, publishes and fires sealed
// bodies, and handles what was sealed.
func TestScheduleMiddlewareIsHonouredOnBothSides(t *testing.T) {
	t.Parallel()
	topic, runs, q := wakebell.NewTopic[[]byte]("topic"), wakebell.NewTopic[stacktest.Invoice]("runs"), queue.New[string]("queue")
	got := map[string]int{}
	wakebelltest.RunWith(t, connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{seal}}, wakebell.Config{
		Middleware: []wakebell.Middleware{unseal},
		Scheduler: &recurring.SchedulerConfig{
			Owner: "test", Schedules: []recurring.Schedule{runs.Recurring("daily", recurring.Rule{Every: 24 * time.Hour}, stacktest.Invoice{Number: "7", Cents: 100})},
		},
		Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[[]byte]) error {
				got[string(t.Body)+" "+t.ContentType]++
				return nil
			}),
			wakebell.Handle(runs, func(_ context.Context, t wakebell.Timer[stacktest.Invoice]) error {
				got[t.Body.Number]++
				return nil
			}),
			wakebell.HandleQueue(q, func(_ context.Context, t wakebell.Timer[string]) error {
				got[t.Body]++
				return nil
			}),
		},
	}, func(t *testing.T, w *wakebelltest.World) {
		body := []byte("hello")
		id, err := topic.Schedule(t.Context(), w.Client(), body, wakebell.In(time.Hour), wakebell.ContentType("x/y"), wakebell.Header("own", "1"))
		require.NoError(t, err)
		require.Equal(t, "hello", string(body), "the body of the caller")
		_, content, err := w.Client().Get(t.Context(), "topic", id)
		require.NoError(t, err)
		require.NotContains(t, string(content.Body), "hello")
		require.Equal(t, map[string]string{"own": "1", "sealed": "timer x/y"}, content.Headers.Map())
		_, err = w.Client().Schedule(t.Context(), topic.Draft([]byte("one")), topic.Draft([]byte("two")))
		require.NoError(t, err)
		_, err = q.Publish(t.Context(), w.Client().Queues(), "message")
		require.NoError(t, err)
		dump, err := w.Client().Schedules().Export(t.Context(), "daily")
		require.NoError(t, err)
		require.Contains(t, string(dump.Wakebell), `"sealed":"recurring application/json"`)
		w.Advance(48 * time.Hour)
	})
	require.Equal(t, map[string]int{"hello x/y": 1, "one ": 1, "two ": 1, "message": 1, "7": 2}, got)
}

// TestRequestsOfThisProcessPassMiddleware sends requests to the gateway as actors do.
// An idempotency key covers the body before the middleware.
func TestRequestsOfThisProcessPassMiddleware(t *testing.T) {
	t.Parallel()
	topic, traces := wakebell.NewTopic[string](redistest.Name(t)), stacktest.NewSpans()
	sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, redistest.Shared(t), connection.Config{TracerProvider: traces, ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{seal}}), wakebell.Config{}))
	m, err := wakebell.ScheduleMessage(topic.Draft("hello", wakebell.ID("a"), wakebell.In(time.Hour)))
	require.NoError(t, err)
	m.Key = "key"
	for range 2 {
		m.Trace = map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
		_, err = wakebell.Answered[*messages.ScheduleResponse](sys.ActorSystem().Root.RequestFuture(sys.Gateway(), m, stacktest.Patience).Result())
		require.NoError(t, err)
		m.Trace = nil
	}
	_, content, err := sys.Client().Get(t.Context(), topic.Name(), "a")
	require.NoError(t, err)
	flip(content.Body)
	require.Equal(t, "hello", string(content.Body))
	require.Equal(t, "b7ad6b7169203331", traces.Named("schedule " + topic.Name())[0].Parent.SpanID().String())
}

// TestErrorsOfScheduleMiddleware has middleware that refuses, and some that breaks the
// rules.
func TestErrorsOfScheduleMiddleware(t *testing.T) {
	t.Parallel()
	topic, refused := wakebell.NewTopic[string](redistest.Name(t)), errors.New("no key")
	for name, c := range map[string]struct {
		mw   func(next wakebelltype.ScheduleFunc, ctx context.Context, out []*wakebelltype.Outgoing) error
		is   error
		text string
	}{
		"refuses": {
			mw: func(wakebelltype.ScheduleFunc, context.Context, []*wakebelltype.Outgoing) error { return refused },
			is: refused, text: "no key",
		},
		"drops one": {
			mw: func(next wakebelltype.ScheduleFunc, ctx context.Context, out []*wakebelltype.Outgoing) error {
				return next(ctx, out[1:])
			},
			is: wakebell.ErrInvalid, text: "it passed on 1 items in place of the 2 of the call",
		},
		"sets a reserved header": {
			mw: func(next wakebelltype.ScheduleFunc, ctx context.Context, out []*wakebelltype.Outgoing) error {
				out[1].SetHeader("reply_to", "x")
				return next(ctx, out)
			},
			is: wakebell.ErrInvalid, text: `timer 1: header "reply_to": the key is reserved`,
		},
		"makes a body too large": {
			mw: func(next wakebelltype.ScheduleFunc, ctx context.Context, out []*wakebelltype.Outgoing) error {
				out[1].Body = bytes.Repeat([]byte("x"), 2<<20)
				return next(ctx, out)
			},
			is: wakebell.ErrInvalid, text: "timer 1: invalid argument: body: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c2 := stacktest.Client(t, redistest.Shared(t), connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{
				func(next wakebelltype.ScheduleFunc) wakebelltype.ScheduleFunc {
					return func(ctx context.Context, out []*wakebelltype.Outgoing) error { return c.mw(next, ctx, out) }
				},
			}})
			_, err := c2.Schedule(t.Context(), topic.Draft("a", wakebell.ID("a")), topic.Draft("b", wakebell.ID("b")))
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			st, err := c2.Stats(t.Context(), topic.Name())
			require.NoError(t, err)
			require.Zero(t, st.Total)
		})
	}
	_, err := connection.New(redistest.Shared(t), connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{nil}})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// TestSpanDoesNotMakePayloadTooLarge schedules a body that is as large as the limit
// allows without a traceparent.
func TestSpanDoesNotMakePayloadTooLarge(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{TracerProvider: stacktest.NewSpans(), PayloadLimit: 4096})
	for size, carries := range map[int]bool{1000: true, 3990: false} {
		_, err := topic.Schedule(t.Context(), c, strings.Repeat("x", size), wakebell.ID("a"), wakebell.In(time.Hour))
		require.NoError(t, err)
		_, content, err := c.Get(t.Context(), topic.Name(), "a")
		require.NoError(t, err)
		_, found := content.Headers.Get("traceparent")
		require.Equal(t, carries, found)
	}
}
