package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/spf13/cobra"
)

// logFlags are --log-format and --log-level.
type logFlags struct{ format, level choice }

func (f *logFlags) register(cmd *cobra.Command) {
	f.format, f.level = oneOf("text", "json"), oneOf("info", "debug", "warn", "error")
	cmd.Flags().Var(&f.format, "log-format", "format of the log on stderr")
	cmd.Flags().Var(&f.level, "log-level", "minimum level to log")
	completeChoice(cmd, "log-format", f.format)
	completeChoice(cmd, "log-level", f.level)
}

// logger returns a logger to w with the format and the level of the flags.
func (f *logFlags) logger(w io.Writer) *slog.Logger {
	return newLogger(w, f.format.value, f.level.value)
}

func newLogger(w io.Writer, format, level string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(jsonEscaper{w}, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// newActorSystem returns an actor system that logs to log: everything at debug
// level, otherwise warnings and errors.
func newActorSystem(log *slog.Logger) *actor.ActorSystem {
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

// lateHandler drops records until its logger is set. gRPC's logger must be set
// before the logger of a node is known.
type lateHandler struct {
	to *atomic.Pointer[slog.Logger]
}

// grpcLog handles gRPC's records. Node sets its logger.
var grpcLog = lateHandler{new(atomic.Pointer[slog.Logger])}

func (h lateHandler) handler() slog.Handler {
	if log := h.to.Load(); log != nil {
		return log.Handler()
	}
	return slog.DiscardHandler
}

func (h lateHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.handler().Enabled(ctx, level)
}

func (h lateHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.handler().Handle(ctx, r)
}

func (h lateHandler) WithAttrs(attrs []slog.Attr) slog.Handler { return h.handler().WithAttrs(attrs) }

func (h lateHandler) WithGroup(name string) slog.Handler { return h.handler().WithGroup(name) }
