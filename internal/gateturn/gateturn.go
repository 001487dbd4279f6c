// Package gateturn runs functions in turns at gates, local and remote ones alike.
package gateturn

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/gates"
)

// Turn is what Do needs of a gate.Turn.
type Turn interface {
	Fence() uint64
	Context() context.Context
	Release(ctx context.Context) error
}

// releaseTimeout bounds how long Do waits for the release to be confirmed.
const releaseTimeout = 5 * time.Second

// Do calls fn and then releases the turn; see gate.Turn.
func Do(ctx context.Context, t Turn, fn func(ctx context.Context, fence uint64) error) (err error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.Context(), func() { cancel(context.Cause(t.Context())) })()
	defer func() {
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer stop()
		released := t.Release(after)
		if !errors.Is(err, gates.ErrTurnLost) { // else fn has reported the loss
			err = errors.Join(err, released)
		}
	}()
	return fn(inner, t.Fence())
}
