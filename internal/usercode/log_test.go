package usercode

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// broken is a handler that panics in the methods that it names.
type broken struct {
	slog.Handler
	in map[string]bool
}

func (b broken) check(method string) {
	if b.in[method] {
		panic("no " + method)
	}
}

func (b broken) Enabled(ctx context.Context, l slog.Level) bool {
	b.check("Enabled")
	return b.Handler.Enabled(ctx, l)
}

func (b broken) Handle(ctx context.Context, r slog.Record) error {
	b.check("Handle")
	return b.Handler.Handle(ctx, r)
}

func (b broken) WithAttrs(attrs []slog.Attr) slog.Handler {
	b.check("WithAttrs")
	return broken{b.Handler.WithAttrs(attrs), b.in}
}

func (b broken) WithGroup(name string) slog.Handler {
	b.check("WithGroup")
	return broken{b.Handler.WithGroup(name), b.in}
}

// TestLoggerSurvivesHandlerThatPanics checks each method of a handler.
func TestLoggerSurvivesHandlerThatPanics(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"":          "level=WARN msg=line g.a=1 g.b=2\n",
		"Enabled":   "",
		"Handle":    "",
		"WithAttrs": "level=WARN msg=line g.b=2\n",
		"WithGroup": "level=WARN msg=line a=1 b=2\n",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var out, complaints bytes.Buffer
			plain := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})
			l := Logger(slog.New(broken{plain, map[string]bool{method: true}}))
			l.Handler().(logHandler).to = &complaints
			require.Same(t, l, Logger(l))
			for range 2 {
				out.Reset()
				l.WithGroup("g").With("a", 1).Warn("line", "b", 2)
				require.Equal(t, want, out.String())
			}
			if method == "" {
				require.Empty(t, complaints.String())
				return
			}
			require.Equal(t, "wakebell: log lines are lost: the slog.Handler panics in "+method+": no "+method+"\n", complaints.String(), "once")
		})
	}
}

func TestLoggerOfNilIsDefault(t *testing.T) {
	t.Parallel()
	require.Equal(t, slog.Default().Handler(), Logger(nil).Handler().(logHandler).user)
	discard := slog.New(slog.DiscardHandler)
	require.Same(t, discard, Logger(discard), "nothing can panic")
}
