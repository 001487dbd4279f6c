package remote

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

// operations is the service Operations of messages/services.proto. Each of its methods
// is beside the method of Client that calls it; carryOutOperation and listing let its
// callers in.
type operations struct {
	rpc.UnsafeOperationsServer

	system    *wakebell.System
	guard     *guard
	operators []string // nil: all
	celery    string   // queues that are open to peers

	// Those that end soon, and those that may go on for as long as their caller reads:
	// these take no room from those.
	short, long *limits.Budget

	mu      sync.Mutex
	running map[*runningOperation]struct{} // that go on
}

// runningOperation is one that goes on, and ends when it is not allowed any more.
type runningOperation struct {
	who     who
	request proto.Message
	end     context.CancelCauseFunc
}

func newOperations(system *wakebell.System, g *guard) *operations {
	return &operations{
		system: system, guard: g, operators: g.cfg.Operators, celery: messages.CeleryQueues(g.cfg.CeleryQueues),
		short: limits.NewBudget(limits.Operations), long: limits.NewBudget(limits.LongOperations),
		running: map[*runningOperation]struct{}{},
	}
}

// enter lets in a caller that may have the request carried out, while there is room
// for it.
func (o *operations) enter(ctx context.Context, request proto.Message, room *limits.Budget) (context.Context, func(), error) {
	caller, _ := ctx.Value(whoKey{}).(who)
	if o.operators != nil && !slices.Contains(o.operators, caller.owner) {
		return nil, nil, status.Error(codes.PermissionDenied, "not an operator of this node")
	}
	if fault := o.guard.permit(caller, request); fault != nil {
		return nil, nil, statusOf(fault)
	}
	of := caller.party()
	if err := room.Take(of, 1); err != nil {
		return nil, nil, statusOf(overloaded(err))
	}
	if room != o.long {
		return ctx, func() { room.Give(of, 1) }, nil
	}
	ctx, end := context.WithCancelCause(ctx)
	run := &runningOperation{caller, request, end}
	o.mu.Lock()
	o.running[run] = struct{}{}
	o.mu.Unlock()
	return ctx, func() {
		o.mu.Lock()
		delete(o.running, run)
		o.mu.Unlock()
		end(nil)
		room.Give(of, 1)
	}, nil
}

// ended is the error of an operation, which may have been ended by recheck.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, wakebell.ErrForbidden) {
		return cause
	}
	return err
}

// recheck ends what goes on by rights that are no longer there.
func (o *operations) recheck() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for run := range o.running {
		if err := o.guard.allowed(run.who, run.request); err != nil {
			run.end(err)
		}
	}
}

// sees reports whether the caller finds a name in a listing.
func (o *operations) sees(ctx context.Context, kind Kind, name string) bool {
	caller, _ := ctx.Value(whoKey{}).(who)
	return o.guard.sees(caller.owner, kind, name)
}
