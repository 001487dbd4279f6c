package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// bad is the one of ten timers for which user code panics.
const bad = "7"

// body is a body whose methods are user code.
type body struct{ ID string }

func (b *body) UnmarshalJSON(data []byte) error {
	var fields struct{ ID string }
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if b.ID = fields.ID; b.ID == "broken "+bad {
		panic("unmarshal of " + bad)
	}
	return nil
}

// brokenLog is a handler of logs that panics in every method.
type brokenLog struct{}

func (brokenLog) Enabled(context.Context, slog.Level) bool  { panic("log: enabled") }
func (brokenLog) Handle(context.Context, slog.Record) error { panic("log: handle") }
func (brokenLog) WithAttrs([]slog.Attr) slog.Handler        { panic("log: attrs") }
func (brokenLog) WithGroup(string) slog.Handler             { panic("log: group") }

// brokenSpans is a span processor, a sampler and a propagator that panic.
type brokenSpans struct {
	starts, ends, samples, carries bool
	propagation.TraceContext
}

func (b brokenSpans) OnStart(context.Context, sdk.ReadWriteSpan) { panicIf(b.starts, "span: start") }
func (b brokenSpans) OnEnd(sdk.ReadOnlySpan)                     { panicIf(b.ends, "span: end") }
func (brokenSpans) Shutdown(context.Context) error               { return nil }
func (brokenSpans) ForceFlush(context.Context) error             { return nil }
func (brokenSpans) Description() string                          { return "broken" }
func (b brokenSpans) ShouldSample(sdk.SamplingParameters) sdk.SamplingResult {
	panicIf(b.samples, "span: sample")
	return sdk.SamplingResult{Decision: sdk.RecordAndSample}
}

func (b brokenSpans) Extract(ctx context.Context, c propagation.TextMapCarrier) context.Context {
	panicIf(b.carries, "span: extract")
	return b.TraceContext.Extract(ctx, c)
}

func (b brokenSpans) Inject(ctx context.Context, c propagation.TextMapCarrier) {
	panicIf(b.carries, "span: inject")
	b.TraceContext.Inject(ctx, c)
}

func (b brokenSpans) Fields() []string {
	panicIf(b.carries, "span: fields")
	return b.TraceContext.Fields()
}

// provider returns a provider with the processor and the sampler.
func (b brokenSpans) provider() oteltrace.TracerProvider {
	return sdk.NewTracerProvider(sdk.WithSpanProcessor(b), sdk.WithSampler(b))
}

func panicIf(broken bool, what string) {
	if broken {
		panic(what)
	}
}

// brokenCodec panics when it decodes the body of one timer.
type brokenCodec struct{}

func (brokenCodec) Name() string { return "broken" }
func (brokenCodec) Encode(_ context.Context, _ payload.Item, body []byte) ([]byte, payload.Step, error) {
	return body, payload.Step{Params: map[string]string{"k": "v"}}, nil
}

func (brokenCodec) Decode(_ context.Context, _ payload.Item, _ payload.Step, body []byte, _ int) ([]byte, error) {
	panicIf(strings.Contains(string(body), `"`+bad+`"`), "decode of "+bad)
	return body, nil
}

// userCode is a kind of user code that panics for one of ten timers.
type userCode struct {
	says   string // reason of the dead letter of that timer; empty: it is handled as the others
	body   string // of that timer; default its id
	fails  bool   // the handler fails that timer
	alone  bool   // not in batches
	cfg    func(*wakebell.Config)
	conn   func(*connection.Config)
	opts   []wakebell.HandlerOption
	target func(*actor.ActorSystem) wakebell.Target
}

func answering(answer func(c actor.Context, l *messages.Lease) any) func(*actor.ActorSystem) wakebell.Target {
	return stacktest.To(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *messages.Lease:
			if m.GetId() == bad {
				c.Respond(answer(c, m))
				return
			}
			c.Respond(m.Ack())
		case *messages.LeaseBatch:
			for _, l := range m.GetLeases() {
				if l.GetId() == bad {
					c.Respond(answer(c, l))
				}
			}
			c.Respond(m.Ack())
		}
	})
}

// brokenProducer returns a target whose producer panics the first time.
func brokenProducer(*actor.ActorSystem) wakebell.Target {
	var spawned atomic.Int64
	return wakebell.ToEachActor(actor.PropsFromProducer(func() actor.Actor {
		panicIf(spawned.Add(1) == 1, "producer")
		return actor.ReceiveFunc(func(c actor.Context) {
			switch m := c.Message().(type) {
			case *messages.Lease:
				c.Respond(m.Ack())
			case *messages.LeaseBatch:
				c.Respond(m.Ack())
			}
		})
	}))
}

func spansThat(b brokenSpans) func(*connection.Config) {
	return func(c *connection.Config) { c.TracerProvider, c.Propagator = b.provider(), b }
}

func panickingUserCode() map[string]userCode {
	var null *poison
	const inError = "panic in Error(): runtime error: invalid memory address or nil pointer dereference"
	return map[string]userCode{
		"log":      {says: "declined", fails: true, conn: func(c *connection.Config) { c.Logger = slog.New(brokenLog{}) }},
		"on dead":  {says: "declined", fails: true, alone: true, cfg: func(c *wakebell.Config) { c.OnDead = func(context.Context, wakebell.DeadLetter) { panic("on dead") } }},
		"nack":     {says: inError, target: answering(func(_ actor.Context, l *messages.Lease) any { return l.Nack(null) })},
		"nack in":  {says: inError + ": retry in 0s", target: answering(func(_ actor.Context, l *messages.Lease) any { return l.NackIn(0, null) })},
		"reject":   {says: inError, target: answering(func(_ actor.Context, l *messages.Lease) any { return l.Reject(null) })},
		"producer": {target: brokenProducer},
		"body":     {says: "panic in decoding the body: unmarshal of " + bad, body: "broken " + bad},
		"payload":  {says: "panic in decoding the payload: decode of " + bad, conn: func(c *connection.Config) { c.Payloads = &payload.Chain{Codecs: []payload.Codec{brokenCodec{}}} }},
		"sampler":  {conn: spansThat(brokenSpans{samples: true})},
		"starts":   {conn: spansThat(brokenSpans{starts: true})},
		"ends":     {conn: spansThat(brokenSpans{ends: true})},
		"carriers": {conn: spansThat(brokenSpans{carries: true})},
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestPanicOfUserCodeConcernsItsTimerAlone has each kind of user code panic for one of ten
// timers: the others are acked, each once, and that one is handled too or fails with the
// text of the panic. No poller is restarted.
func TestPanicOfUserCodeConcernsItsTimerAlone(t *testing.T) {
	t.Parallel()
	for name, code := range panickingUserCode() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stacktest.Virtually(t, func(t *testing.T) { code.run(t, false) })
		})
		if !code.alone {
			t.Run(name+" in a batch", func(t *testing.T) {
				t.Parallel()
				stacktest.Virtually(t, func(t *testing.T) { code.run(t, true) })
			})
		}
	}
}

func (u userCode) run(t *testing.T, batch bool) {
	rdb, _ := redistest.Embedded(t)
	system, topic := stacktest.ActorSystem(), wakebell.NewTopic[body]("t")
	var acked atomic.Int64
	verdict := func(id string) error {
		if id == bad && u.fails {
			return errors.New("declined")
		}
		if id != bad {
			acked.Add(1)
		}
		return nil
	}
	opts := append([]wakebell.HandlerOption{wakebell.MaxAttempts(2), wakebell.RetryBackoff(time.Second, time.Second), wakebell.MaxConcurrent(3)}, u.opts...)
	h := wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[body]) error { return verdict(timer.ID) }, opts...)
	switch {
	case u.target != nil && batch:
		h = wakebell.Forward(topic, u.target(system), append(opts, wakebell.BatchSize(10))...)
	case u.target != nil:
		h = wakebell.Forward(topic, u.target(system), opts...)
	case batch:
		h = wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[body]) error {
			e := wakebell.BatchError{}
			for _, timer := range timers {
				e[timer.ID] = verdict(timer.ID)
			}
			return e
		}, opts...)
	}
	cfg := wakebell.Config{DrainTimeout: -1, Handlers: []wakebell.Handler{h}}
	if u.cfg != nil {
		u.cfg(&cfg)
	}
	var on connection.Config
	if u.conn != nil {
		u.conn(&on)
	}
	sys := must(wakebell.New(system, conntest.New(t, rdb, on), cfg))
	on.Logger = nil
	client := stacktest.Client(t, rdb, on)
	var drafts []wakebell.Draft
	for i := range 10 {
		id := fmt.Sprint(i)
		text := id
		if id == bad && u.body != "" {
			text = u.body
		}
		drafts = append(drafts, topic.Draft(body{text}, wakebell.ID(id), wakebell.Header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")))
	}
	_, err := client.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	stacktest.Launch(t, sys)
	<-time.After(time.Minute)

	counters := sys.Counters()["t"]
	var reasons []string
	for letter, err := range client.DeadLetters(t.Context(), "t", wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		require.Equal(t, bad, letter.ID)
		reasons = append(reasons, letter.Reason)
	}
	want, dead := int64(10), []string(nil)
	if u.says != "" {
		want, dead = 9, []string{u.says}
	}
	require.Equal(t, dead, reasons)
	require.Equal(t, want, counters.Acked)
	if u.target == nil {
		require.EqualValues(t, 9, acked.Load(), "each was handled once")
	}
	require.Zero(t, counters.Restarts, "of the poller")
	require.Zero(t, counters.HandlerRestarts)
	require.Zero(t, counters.Crashed)
	stats := must(client.Stats(t.Context(), "t"))
	require.Zero(t, stats.Total)
	require.False(t, slices.Contains(reasons, ""))
}
