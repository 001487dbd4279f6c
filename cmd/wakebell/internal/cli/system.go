package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/wakebell/wakebell"
)

// RunSystem runs the system until ctx ends. It returns the cause of that end, unless
// that was a signal.
func RunSystem(ctx context.Context, sys *wakebell.System, log *slog.Logger, attrs ...slog.Attr) error {
	if err := sys.Start(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // a signal while it waited for Redis
		}
		return err
	}
	log.LogAttrs(ctx, slog.LevelInfo, "node runs", attrs...)
	<-ctx.Done()
	log.InfoContext(ctx, "node drains")
	err := sys.Stop()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	if err == nil {
		log.InfoContext(ctx, "node ended")
	}
	return err
}
