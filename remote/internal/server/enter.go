package server

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
)

// operations implements the service Operations of messages/services.proto.
// carryOutOperation and listing admit its callers.
type operations struct {
	rpc.UnsafeOperationsServer

	system    *wakebell.System
	guard     *peer.Guard
	operators []string // nil: all
	celery    string   // Celery queues that are open to peers

	// short bounds operations that end soon, long those that last as long as their caller
	// reads. The latter take no room from the former.
	short, long *limits.Budget

	mu      sync.Mutex
	running map[*runningOperation]struct{} // long operations
}

// runningOperation is a long operation. It ends when it is no longer permitted.
type runningOperation struct {
	caller  peer.Caller
	request proto.Message
	end     context.CancelCauseFunc
}

func newOperations(system *wakebell.System, g *peer.Guard) *operations {
	o := &operations{
		system: system, guard: g, operators: g.Cfg.Operators, celery: messages.CeleryQueues(g.Cfg.CeleryQueues),
		short: limits.NewBudget(limits.Operations), long: limits.NewBudget(limits.LongOperations),
		running: map[*runningOperation]struct{}{},
	}
	g.Measure(o.short, o.long)
	return o
}

// Enter admits a caller with permission for the request, if there is room for it.
func (o *operations) Enter(ctx context.Context, request proto.Message, room *limits.Budget) (context.Context, func(), error) {
	caller := peer.CallerOf(ctx)
	if err := o.admit(caller); err != nil {
		return nil, nil, err
	}
	if fault := o.guard.Permit(caller, request); fault != nil {
		return nil, nil, wire.StatusOf(fault)
	}
	ctx = withSpan(ctx)
	of := caller.Party()
	if err := room.Take(of, 1); err != nil {
		return nil, nil, wire.StatusOf(peer.Overloaded(err))
	}
	if room != o.long {
		return ctx, func() { room.Give(of, 1) }, nil
	}
	ctx, done := o.whilePermitted(ctx, caller, request)
	return ctx, func() {
		done()
		room.Give(of, 1)
	}, nil
}

// whilePermitted returns a context for an operation that goes on until done is called. It ends
// when the caller loses the right to it; see ended.
func (o *operations) whilePermitted(ctx context.Context, caller peer.Caller, request proto.Message) (while context.Context, done func()) {
	ctx, end := context.WithCancelCause(ctx)
	run := &runningOperation{caller, request, end}
	o.mu.Lock()
	o.running[run] = struct{}{}
	o.mu.Unlock()
	if err := o.guard.Allowed(caller, request); err != nil { // it lost the right since it was admitted
		end(err)
	}
	return ctx, func() {
		o.mu.Lock()
		delete(o.running, run)
		o.mu.Unlock()
		end(nil)
	}
}

// admit returns an error if a caller is not one of Config.Operators.
func (o *operations) admit(caller peer.Caller) error {
	if o.operators != nil && !slices.Contains(o.operators, caller.Owner) {
		return status.Error(codes.PermissionDenied, "not an operator of this node")
	}
	return nil
}

// withSpan returns ctx with the span of the caller, in the headers of W3C trace context.
func withSpan(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	if len(md.Get("traceparent")) == 0 {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	for _, key := range []string{"traceparent", "tracestate"} {
		if values := md.Get(key); len(values) > 0 {
			carrier[key] = values[0]
		}
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// ended returns the error of an operation, or the reason why recheck ended it.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, wakebell.ErrForbidden) {
		return cause
	}
	return err
}

// recheck ends the long operations that are no longer permitted.
func (o *operations) recheck() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for run := range o.running {
		if err := o.guard.Allowed(run.caller, run.request); err != nil {
			run.end(err)
		}
	}
}

// Sees reports whether the caller may see a name in listings.
func (o *operations) Sees(ctx context.Context, kind rights.Kind, name string) bool {
	caller := peer.CallerOf(ctx)
	return o.guard.Sees(caller.Owner, kind, name)
}
