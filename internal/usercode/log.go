package usercode

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
)

// Logger returns a logger whose handler does not panic: what the user's handler panics at
// is lost, and the first time a line on the standard error says so. nil stands for
// slog.Default. It is called where the default of a Logger is set; a logger that it has
// returned stays as it is.
func Logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		l = slog.Default()
	}
	if _, safe := l.Handler().(logHandler); safe || l.Handler() == slog.DiscardHandler {
		return l
	}
	return slog.New(logHandler{l.Handler(), &complaint{to: os.Stderr}})
}

// logHandler calls a user's handler.
type logHandler struct {
	user slog.Handler
	*complaint
}

// complaint reports the first panic of a handler, and of those made from it.
type complaint struct {
	to   io.Writer
	made atomic.Bool
}

func (c *complaint) recover(method string) {
	if reason := recover(); reason != nil && c.made.CompareAndSwap(false, true) {
		_, _ = fmt.Fprintf(c.to, "wakebell: log lines are lost: the slog.Handler panics in %s: %v\n", method, reason)
	}
}

// Enabled implements slog.Handler.
func (h logHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer h.recover("Enabled")
	return h.user.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	defer h.recover("Handle")
	return h.user.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	with = h
	defer h.recover("WithAttrs")
	return logHandler{h.user.WithAttrs(attrs), h.complaint}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) (with slog.Handler) {
	with = h
	defer h.recover("WithGroup")
	return logHandler{h.user.WithGroup(name), h.complaint}
}
