package gate

import (
	"context"
	"fmt"
	"time"

	actorgates "github.com/wakebell/wakebell/actors/gates"
)

// Turn is the right to proceed at a gate, until it is released or lost. It is
// extended while its process lives and reaches Redis (or its node). Gates and
// the Gates of package remote implement it.
type Turn interface {
	// Gate returns the name of the gate.
	Gate() string

	// Fence returns the fencing token: greater than that of every turn before,
	// less than 2^53. A resource that remembers the newest token it has seen and
	// refuses older ones is safe from a holder that lost its turn without
	// knowing it yet.
	Fence() uint64

	// Waited returns how long Acquire waited for the turn.
	Waited() time.Duration

	// Context has the values of Acquire's context. It ends with the cause
	// ErrTurnLost when the turn is lost, at the latest when its lease expires by
	// the local clock, and it ends when the turn is released.
	Context() context.Context

	// Until returns when the lease expires by the local clock unless it is
	// extended, which happens every third of LeaseTTL.
	Until() time.Time

	// Release hands the turn over to the next waiter: at once in the same
	// process, with one request in another. Errors: ErrTurnLost if it was lost
	// before, or the cause of ctx; it is released in either case. A second
	// Release returns the result of the first.
	Release(ctx context.Context) error

	// Guard is Gates.Guard with the token of the turn.
	Guard(ctx context.Context, resource string) error

	// Do calls fn and releases the turn when fn returns. The context of fn ends
	// with ctx, or with the cause ErrTurnLost. Do returns the error of fn, joined
	// with ErrTurnLost if the turn was lost before fn returned.
	Do(ctx context.Context, fn func(ctx context.Context, fence uint64) error) error
}

// localTurn is a turn of the Gates of this process.
type localTurn struct {
	held  *actorgates.Turn
	gates *Gates
}

func (t *localTurn) Gate() string             { return t.held.Gate }
func (t *localTurn) Fence() uint64            { return t.held.Fence }
func (t *localTurn) Waited() time.Duration    { return t.held.Waited }
func (t *localTurn) Context() context.Context { return t.held.Context() }
func (t *localTurn) Until() time.Time         { return t.held.Until() }

func (t *localTurn) Release(ctx context.Context) error {
	if err := t.held.Release(ctx); err != nil {
		return fmt.Errorf("release %q (fence %d): %w", t.Gate(), t.Fence(), err)
	}
	return nil
}

func (t *localTurn) Guard(ctx context.Context, resource string) error {
	return t.gates.Guard(ctx, t.Gate(), resource, t.Fence())
}

func (t *localTurn) Do(ctx context.Context, fn func(ctx context.Context, fence uint64) error) error {
	return actorgates.InTurn(ctx, t, fn)
}
