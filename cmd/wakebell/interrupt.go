package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errInterrupted ends a command that a signal stops before it is done.
var errInterrupted = errors.New("interrupted")

// finishLimit bounds a step that is in progress when a signal comes.
const finishLimit = 2 * time.Second

// outlasting returns a context that ends finishLimit after ctx, for a step whose
// outcome must be known.
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

// soFar adds to the error of a command how much was done before it.
func soFar(err error, done int64, what string) error {
	if done == 0 && !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%d %s: %w", done, what, err)
}
