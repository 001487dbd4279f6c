package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
)

// NewActorSystem returns an actor system that logs to log: everything at debug
// level, otherwise warnings and errors.
func NewActorSystem(log *slog.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(quietHandler{log.Handler()})
	}))
}

// quietHandler passes on warnings and errors, and everything if the log is at debug
// level.
type quietHandler struct{ slog.Handler }

func (q quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	if level < slog.LevelWarn && !q.Handler.Enabled(ctx, slog.LevelDebug) {
		return false
	}
	return q.Handler.Enabled(ctx, level)
}

func (q quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{q.Handler.WithAttrs(attrs)}
}

func (q quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{q.Handler.WithGroup(name)}
}

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
