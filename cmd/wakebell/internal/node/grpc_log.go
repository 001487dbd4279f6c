package node

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// lateHandler drops records until its logger is set. gRPC's logger must be set
// before the logger of a node is known.
type lateHandler struct {
	to *atomic.Pointer[slog.Logger]
}

// GRPCLogger returns the logger for gRPC. It drops records until a node runs, whose
// logger gets them from then on.
func GRPCLogger() *slog.Logger { return slog.New(grpcLog) }

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
