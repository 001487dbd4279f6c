package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errInterrupted is what ends a command that had more to do when a signal came.
var errInterrupted = errors.New("interrupted")

// finishLimit is how long a step that is under way may take after a signal.
const finishLimit = 2 * time.Second

// outlasting is a context that ends finishLimit after ctx does: for a step whose
// outcome should be known.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	last, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(finishLimit, func() { cancel(errInterrupted) })
		context.AfterFunc(last, func() { timer.Stop() })
	})
	return last, func() {
		unwatch()
		cancel(nil)
	}
}

// soFar is the error of a command that does much, with what was done before it.
func soFar(err error, done int64, what string) error {
	if done == 0 && !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%d %s: %w", done, what, err)
}
