package gates

import (
	"context"
	"errors"
	"time"
)

// Releasable is what InTurn needs of a gate.Turn, a local or a remote one.
type Releasable interface {
	Fence() uint64
	Context() context.Context
	Release(ctx context.Context) error
}

// releaseTimeout bounds how long InTurn waits for the release to be confirmed.
const releaseTimeout = 5 * time.Second

// InTurn calls fn and then releases the turn; see gate.Turn.
func InTurn(ctx context.Context, t Releasable, fn func(ctx context.Context, fence uint64) error) (err error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.Context(), func() { cancel(context.Cause(t.Context())) })()
	defer func() {
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer stop()
		released := t.Release(after)
		if !errors.Is(err, ErrTurnLost) { // else fn has reported the loss
			err = errors.Join(err, released)
		}
	}()
	return fn(inner, t.Fence())
}
