package timers

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// finishLimit bounds a step that is in progress when a signal comes.
const finishLimit = 2 * time.Second

// outlasting returns a context that ends finishLimit after ctx, for a step whose
// outcome must be known.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	last, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(finishLimit, func() { cancel(cli.ErrInterrupted) })
		context.AfterFunc(last, func() { timer.Stop() })
	})
	return last, func() {
		unwatch()
		cancel(nil)
	}
}
