package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/server"
	"github.com/wakebell/wakebell/remote/internal/web"
	"github.com/wakebell/wakebell/remote/rights"
)

// Server gives other processes access to a System.
type Server struct {
	system *wakebell.System
	server *server.Server
	http   *web.Server // nil: it does not listen for HTTP
	at     string      // address of HTTP
}

// ErrStarted is returned by Serve if the System was started before: its running
// actors have PIDs without an address, so peers could not answer them.
var ErrStarted = errors.New("the system was started before it was served")

// Serve listens and gives other processes access to sys: actors through the
// protocol of protoactor's remote, other programs through gRPC. Call Serve before
// sys.Start; requests that arrive earlier wait for it. Errors: wakebell.ErrInvalid,
// ErrInsecure, ErrStarted, an error if the ActorSystem already has an address, or
// the error of listening.
func Serve(sys *wakebell.System, cfg Config) (*Server, error) {
	if sys == nil {
		return nil, argument.Invalid("system", "nil")
	}
	if _, running := sys.ActorSystem().ProcessRegistry.GetLocal(sys.Gateway().GetId()); running {
		return nil, ErrStarted
	}
	cfg = cfg.withDefaults()
	cfg.logger = sys.Connection().Config().Logger
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	s, err := server.Start(sys, cfg.settings())
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	served := &Server{system: sys, server: s}
	if err := served.listenHTTP(cfg.HTTPAddress); err != nil {
		s.Stop()
		return nil, fmt.Errorf("serve: %w", err)
	}
	return served, nil
}

func (s *Server) listenHTTP(address string) error {
	if address == "" {
		return nil
	}
	l, err := s.server.ListenHTTP(address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	s.at, s.http = l.Addr().String(), web.Serve(l, s.server, s.HTTPHandler())
	return nil
}

// HTTPHandler returns a handler of the HTTP API, for a program that serves it itself. It
// authenticates, permits and bounds requests as Config says; the TLS, the connections and
// the time that headers take are the program's. Without Tokens and client certificates it
// answers requests for loopback only, unless Config.Insecure is set.
func (s *Server) HTTPHandler() http.Handler { return web.NewHandler(s.server) }

// HTTPAddress returns the host:port of Config.HTTPAddress; empty: none.
func (s *Server) HTTPAddress() string { return s.at }

// Address returns the host:port under which peers reach the System.
func (s *Server) Address() string { return s.system.ActorSystem().Address() }

// SetTokens replaces Config.Tokens and Config.TokenCertificates; certificates may
// be nil. Connections whose token is removed, has another owner or is bound to another
// certificate are closed at once, together with their calls. A principal without a token loses
// what SetRights takes from one without rights. SetTokens cannot turn authentication
// on or off: if tokens are empty and Config.Tokens were not, or the reverse, the
// error is wakebell.ErrInvalid, as it is for invalid tokens.
func (s *Server) SetTokens(tokens, certificates map[string]string) error {
	return s.server.SetTokens(tokens, certificates)
}

// SetRights replaces Config.Rights. Subscriptions and long calls such as Tail that
// the new rights do not permit end, and turns at gates that they do not permit are
// no longer extended. SetRights cannot turn rights on or off: if rights or
// Config.Rights is nil, the error is wakebell.ErrInvalid.
func (s *Server) SetRights(rights *rights.Grants) error { return s.server.SetRights(rights) }

// Stop stops listening and closes all connections. Call it after the System's
// Stop, which answers the requests in flight. Further calls do nothing.
func (s *Server) Stop() {
	if s.http != nil {
		s.http.Stop()
	}
	s.server.Stop()
}

// Run serves sys, starts it, and stops both when ctx ends. It returns the error of
// Serve or of sys.Run, which also returns when another goroutine calls sys.Stop.
func Run(ctx context.Context, sys *wakebell.System, cfg Config) error {
	s, err := Serve(sys, cfg)
	if err != nil {
		return err
	}
	defer s.Stop()
	return sys.Run(ctx)
}

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
