package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors/gates"
)

// Turn is the right to be behind a gate, until it is released or lost. While
// the process lives and reaches Redis, or its node, it is extended.
type Turn struct{ held HeldTurn }

// HeldTurn is a turn as its Gatekeeper knows it; see Turn's methods of the same
// names. It is for packages that give turns, as package remote does.
type HeldTurn interface {
	Gate() string
	Fence() uint64
	Waited() time.Duration
	Context() context.Context
	Until() time.Time
	Release(ctx context.Context) error
	Guard(ctx context.Context, resource string) error
}

// NewTurn is the Turn of a Gatekeeper that has it.
func NewTurn(held HeldTurn) *Turn { return &Turn{held} }

// Gate is the name of the gate.
func (t *Turn) Gate() string { return t.held.Gate() }

// Fence is the fencing token: above that of every turn before, below 2^53. A
// resource that remembers the newest token it has seen, and refuses older ones,
// is safe from a holder that has lost its turn and does not know yet.
func (t *Turn) Fence() uint64 { return t.held.Fence() }

// Waited is how long it took to become its turn.
func (t *Turn) Waited() time.Duration { return t.held.Waited() }

// Context has the values of Acquire's context. It ends with ErrTurnLost as its
// cause when the turn is lost, at the latest when its lease ends by the local
// clock, and with the release.
func (t *Turn) Context() context.Context { return t.held.Context() }

// Until is when the turn ends by the local clock unless it is extended, which
// happens at a third of LeaseTTL.
func (t *Turn) Until() time.Time { return t.held.Until() }

// Release hands over to the next: in another process with the request that gives
// the turn back, in the same at once. Errors: ErrTurnLost when it was lost
// before, or the cause of ctx; then it is released all the same. A second
// Release gets the answer of the first.
func (t *Turn) Release(ctx context.Context) error {
	if err := t.held.Release(ctx); err != nil {
		return fmt.Errorf("release %q (fence %d): %w", t.Gate(), t.Fence(), err)
	}
	return nil
}

// Guard is Gates.Guard with the turn's token.
func (t *Turn) Guard(ctx context.Context, resource string) error {
	return t.held.Guard(ctx, resource)
}

// releaseLimit bounds how long Do waits for a release to be confirmed.
const releaseLimit = 5 * time.Second

// Do runs fn in the turn, and hands over when it returns. The context of fn ends
// with ctx, or with ErrTurnLost as its cause. It returns what fn returns, joined
// with ErrTurnLost if the turn was lost meanwhile.
func (t *Turn) Do(ctx context.Context, fn func(ctx context.Context, fence uint64) error) (err error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.Context(), func() { cancel(context.Cause(t.Context())) })()
	defer func() {
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer stop()
		released := t.Release(after)
		if !errors.Is(err, ErrTurnLost) { // else it is said already
			err = errors.Join(err, released)
		}
	}()
	return fn(inner, t.Fence())
}

// turnHere is a turn of this process's gates.
type turnHere struct {
	*gates.Turn
	gates *Gates
}

func (t turnHere) Gate() string          { return t.Turn.Gate }
func (t turnHere) Fence() uint64         { return t.Turn.Fence }
func (t turnHere) Waited() time.Duration { return t.Turn.Waited }

func (t turnHere) Guard(ctx context.Context, resource string) error {
	return t.gates.Guard(ctx, t.Gate(), resource, t.Fence())
}
