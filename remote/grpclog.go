package remote

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

// GRPCLogger has gRPC log to log, for grpclog.SetLoggerV2, which a program calls
// once, before it uses gRPC: else gRPC writes lines of its own to stderr, with
// what peers have sent in them. Warnings and errors are logged as an attribute,
// which slog escapes: 10 lines of a kind a minute, and 60 of all.
func GRPCLogger(log *slog.Logger) grpclog.LoggerV2 {
	return &grpcLogger{log: log, lines: loglimit.Limiter{Every: time.Minute, Each: 10, Total: limits.LogLines.Total}}
}

type grpcLogger struct {
	log   *slog.Logger
	lines loglimit.Limiter
}

// maxGRPCLine bounds what is logged of a line, in bytes.
const maxGRPCLine = 512

func (l *grpcLogger) write(level slog.Level, text string) {
	kind, _, _ := strings.Cut(text, ":")
	if len(kind) > 64 {
		kind = kind[:64]
	}
	if skipped, ok := l.lines.Allow(kind); ok {
		if len(text) > maxGRPCLine {
			text = text[:maxGRPCLine] + "…"
		}
		text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
		//nolint:forbidigo // gRPC's logger has no context
		l.log.Log(context.Background(), level, "grpc", "text", text, "skipped", skipped)
	}
}

func (l *grpcLogger) Info(...any)           {}
func (l *grpcLogger) Infoln(...any)         {}
func (l *grpcLogger) Infof(string, ...any)  {}
func (l *grpcLogger) Warning(args ...any)   { l.write(slog.LevelWarn, fmt.Sprint(args...)) }
func (l *grpcLogger) Warningln(args ...any) { l.write(slog.LevelWarn, fmt.Sprintln(args...)) }
func (l *grpcLogger) Warningf(format string, args ...any) {
	l.write(slog.LevelWarn, fmt.Sprintf(format, args...))
}
func (l *grpcLogger) Error(args ...any)   { l.write(slog.LevelError, fmt.Sprint(args...)) }
func (l *grpcLogger) Errorln(args ...any) { l.write(slog.LevelError, fmt.Sprintln(args...)) }
func (l *grpcLogger) Errorf(format string, args ...any) {
	l.write(slog.LevelError, fmt.Sprintf(format, args...))
}

// Fatal is an error like the others: no peer and no library ends the program.
func (l *grpcLogger) Fatal(args ...any)                 { l.Error(args...) }
func (l *grpcLogger) Fatalln(args ...any)               { l.Errorln(args...) }
func (l *grpcLogger) Fatalf(format string, args ...any) { l.Errorf(format, args...) }

// V reports whether lines of a verbosity are logged: none.
func (l *grpcLogger) V(int) bool { return false }
