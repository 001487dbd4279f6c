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

// Server serves a System to other processes.
type Server struct {
	system *wakebell.System
	server *server.Server
}

// ErrStarted says that Serve came after the System's Start: actors that run
// already have no address that a peer could answer to.
var ErrStarted = errors.New("the system was started before it was served")

// Serve has other processes reach the gateway of a System: actors through
// protoactor's remote, others through the gRPC service wakebell.v1.Timers. It
// comes before the System's Start, which what comes in waits for. Errors:
// wakebell.ErrInvalid, ErrInsecure, ErrStarted, ErrListening, or why it cannot
// listen.
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

// Address is the host:port under which peers reach the System.
func (s *Server) Address() string { return s.system.ActorSystem().Address() }

// SetTokens replaces Config.Tokens and Config.TokenCertificates, which may be
// nil. Connections by tokens that are no longer among them, or are bound to
// another certificate now, end at once, with all that is under way on them. It
// does not turn the asking for tokens on or off. Errors: wakebell.ErrInvalid.
func (s *Server) SetTokens(tokens, certificates map[string]string) error {
	return s.server.SetTokens(tokens, certificates)
}

// SetRights replaces Config.Rights. What goes on by rights that are no longer there
// ends: subscriptions, and long operations such as Tail. Turns at gates are not
// extended any more. It does not turn rights on or off. Errors: wakebell.ErrInvalid.
func (s *Server) SetRights(rights *rights.Grants) error { return s.server.SetRights(rights) }

// Stop ends all links and listens no more. It comes after the System's Stop,
// which answers what is under way. A second Stop does nothing.
func (s *Server) Stop() { s.server.Stop() }

// Run starts the System, serves it until ctx ends, and stops both. Its error is
// that of Serve, or of the System's Run.
func Run(ctx context.Context, sys *wakebell.System, cfg Config) error {
	s, err := Serve(sys, cfg)
	if err != nil {
		return err
	}
	defer s.Stop()
	return sys.Run(ctx)
}
