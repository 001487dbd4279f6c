// Package outgoing is what a process does with timers and messages before they leave
// it: a span whose context their headers carry, and the schedule middleware.
package outgoing

import (
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Edge is the way out of a process. A nil Edge does nothing.
type Edge struct {
	Middleware []wakebelltype.ScheduleMiddleware
	Tracer     *tracing.Tracer

	// Apart leaves the headers without the span's context, because the caller
	// sends it in another way.
	Apart bool

	// Limit is that of a payload, in bytes; 0: none. One that is close to it is sent
	// without the span's context, which must not make a call fail.
	Limit int
}

// reserve is the room for a span's context, the envelope and the fields of a payload
// other than its headers.
const reserve = 2 << 10

// New returns the edge of a client. Errors wrap wakebelltype.ErrInvalid.
func New(mw []wakebelltype.ScheduleMiddleware, provider trace.TracerProvider, propagator propagation.TextMapPropagator, limit int) (*Edge, error) {
	if slices.ContainsFunc(mw, func(m wakebelltype.ScheduleMiddleware) bool { return m == nil }) {
		return nil, argument.Invalid("ScheduleMiddleware", "nil")
	}
	return &Edge{Middleware: mw, Tracer: tracing.New(tracing.Config{Provider: provider, Propagator: propagator}), Limit: limit}, nil
}

// Trace returns ctx with the span of another process or actor.
func (e *Edge) Trace(ctx context.Context, headers map[string]string) context.Context {
	if e == nil {
		return ctx
	}
	return e.Tracer.Extract(ctx, headers)
}

// Plain reports that a call has neither middleware nor a span.
func (e *Edge) Plain(ctx context.Context) bool {
	return e == nil || len(e.Middleware) == 0 && !e.Tracer.Carries(ctx)
}

// Send stores what a call schedules: in a span, and through the middleware. Requests of
// peers pass without the middleware: their process has run its own.
func (e *Edge) Send(ctx context.Context, operation string, out []*wakebelltype.Outgoing, store wakebelltype.ScheduleFunc) (err error) {
	if e == nil || len(out) == 0 {
		return store(ctx, out)
	}
	ctx, span := e.Tracer.Send(ctx, operation, out)
	defer func() { span.End(err) }()
	if !e.Apart {
		e.Tracer.Stamp(ctx, out, e.hasRoom)
	}
	if len(e.Middleware) == 0 || messages.Restricted(ctx) {
		return store(ctx, out)
	}
	for _, o := range out { // a middleware may change the body in place
		o.Body = slices.Clone(o.Body)
	}
	sent := slices.Clone(out)
	var next wakebelltype.ScheduleFunc = func(ctx context.Context, changed []*wakebelltype.Outgoing) error {
		if !slices.Equal(sent, changed) {
			return argument.Invalid("ScheduleMiddleware", "it passed on %d items in place of the %d of the call", len(changed), len(sent))
		}
		if err := check(changed); err != nil {
			return err
		}
		return store(ctx, changed)
	}
	for _, wrap := range slices.Backward(e.Middleware) {
		next = wrap(next)
	}
	return next(ctx, out)
}

// hasRoom reports whether the headers of a span fit into the payload.
func (e *Edge) hasRoom(o *wakebelltype.Outgoing) bool {
	size := len(o.Body) + reserve
	for _, h := range o.Headers {
		size += len(h.Key) + len(h.Value)
	}
	return e.Limit == 0 || size <= e.Limit
}

// Each is Send for drafts of any type: of returns what the middleware sees of one, nil
// for nothing, and apply writes that back into a copy of the draft.
func Each[D any](
	ctx context.Context, e *Edge, operation string, drafts []D,
	of func(*D) *wakebelltype.Outgoing, apply func(*D, *wakebelltype.Outgoing), store func(context.Context, []D) error,
) error {
	if e.Plain(ctx) {
		return store(ctx, drafts)
	}
	drafts = slices.Clone(drafts)
	var out []*wakebelltype.Outgoing
	var at []int // of each in drafts
	for i := range drafts {
		if o := of(&drafts[i]); o != nil {
			o.Headers = slices.Clone(o.Headers)
			out, at = append(out, o), append(at, i)
		}
	}
	return e.Send(ctx, operation, out, func(ctx context.Context, out []*wakebelltype.Outgoing) error {
		for i, o := range out {
			apply(&drafts[at[i]], o)
		}
		return store(ctx, drafts)
	})
}

// check checks the headers of a middleware.
func check(out []*wakebelltype.Outgoing) error {
	for i, o := range out {
		for _, h := range o.Headers {
			if err := envelope.CheckHeader(h.Key, h.Value); err != nil {
				return fmt.Errorf("%w: ScheduleMiddleware: %s %d: header %s: %w", wakebelltype.ErrInvalid, o.Kind, i, argument.Quote(h.Key), err)
			}
		}
	}
	return nil
}
