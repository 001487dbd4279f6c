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

// GRPCLogger returns a logger for grpclog.SetLoggerV2 that writes gRPC's warnings
// and errors to log. Without it, gRPC writes to stderr and includes data that peers
// sent. Here the text is an attribute, which slog escapes, cut to 512 bytes. At
// most 10 lines of a kind and 60 lines in total are logged per minute. Call
// SetLoggerV2 once, before the program uses gRPC.
func GRPCLogger(log *slog.Logger) grpclog.LoggerV2 {
	return &grpcLogger{log: log, lines: loglimit.Limiter{Every: time.Minute, Each: 10, Total: limits.LogLines.Total}}
}

type grpcLogger struct {
	log   *slog.Logger
	lines loglimit.Limiter
}

// maxGRPCLine is how much of a line is logged, in bytes.
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

// Fatal logs an error and does not end the program, because a peer may cause it.
func (l *grpcLogger) Fatal(args ...any)                 { l.Error(args...) }
func (l *grpcLogger) Fatalln(args ...any)               { l.Errorln(args...) }
func (l *grpcLogger) Fatalf(format string, args ...any) { l.Errorf(format, args...) }

// V returns false: no verbose lines are logged.
func (l *grpcLogger) V(int) bool { return false }
