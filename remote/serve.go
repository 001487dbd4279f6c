package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/remote/internal/server"
	"github.com/wakebell/wakebell/remote/rights"
)

// Server gives other processes access to a System.
type Server struct {
	system *wakebell.System
	server *server.Server
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
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	s, err := server.Start(sys, cfg.settings())
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return &Server{sys, s}, nil
}

// Address returns the host:port under which peers reach the System.
func (s *Server) Address() string { return s.system.ActorSystem().Address() }

// SetTokens replaces Config.Tokens and Config.TokenCertificates; certificates may
// be nil. Connections whose token is removed or bound to another certificate are
// closed at once, together with their calls. SetTokens cannot turn authentication
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
func (s *Server) Stop() { s.server.Stop() }

// Run serves sys, starts it, and stops both when ctx ends. It returns the error of
// Serve or of sys.Run.
func Run(ctx context.Context, sys *wakebell.System, cfg Config) error {
	s, err := Serve(sys, cfg)
	if err != nil {
		return err
	}
	defer s.Stop()
	return sys.Run(ctx)
}
