package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages/rpc"
)

// Server serves a System to other processes.
type Server struct {
	guard  *guard
	system *wakebell.System
	router *actor.PID // of subscriptions
	gates  *actor.PID

	operations *operations
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
		return nil, invalid("system", "nil")
	}
	actors := sys.ActorSystem()
	if _, running := actors.ProcessRegistry.GetLocal(sys.Gateway().GetId()); running {
		return nil, ErrStarted
	}
	g, err := newGuard(actors, cfg)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	g.queues = newQueueKeys(sys, g.cfg.Queues)
	s := &Server{guard: g, system: sys, operations: newOperations(sys, g)}
	s.gates = actors.NewLocalPID(strings.TrimSuffix(sys.Gateway().GetId(), "gateway") + "gates")
	s.open()
	if err := g.listen(); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if err := s.spawn(); err != nil {
		g.stop()
		return nil, fmt.Errorf("serve: %w", err)
	}
	g.serve()
	return s, nil
}

// subscriptions is the name of the actor that has the subscriptions of a
// System, after the System's own.
const subscriptions = "-subscriptions"

// spawn starts the actor of the subscriptions. It comes after listen, for it
// has to have an address.
func (s *Server) spawn() error {
	gateway := s.system.Gateway().GetId()
	name := strings.TrimSuffix(gateway, "/gateway") + subscriptions
	shared := newHubs(s.system, s.guard)
	props := actor.PropsFromProducer(func() actor.Actor { return &router{hubs: shared} })
	router, err := s.system.ActorSystem().Root.SpawnNamed(props, name)
	if err != nil {
		return err
	}
	s.router = router
	s.guard.filter.open(gateway, func(e *entry) {
		for _, kind := range subscribing {
			e.takes[kind] = router.GetId()
		}
	})
	return nil
}

// open says what peers may ask for.
func (s *Server) open() {
	gateway := s.system.Gateway().GetId()
	s.guard.filter.open(gateway, func(e *entry) {
		e.watch = true
		for _, kind := range requests {
			e.takes[kind] = gateway
		}
		for _, kind := range turning {
			e.takes[kind] = s.gates.GetId()
		}
	})
	s.guard.filter.open(s.gates.GetId(), func(e *entry) { e.terminated = true })
	keeper := s.system.Reminders().PID().GetId()
	s.guard.filter.open(keeper, func(e *entry) {
		e.watch = true
		for _, kind := range slices.Concat(reminding, reminded) {
			e.takes[kind] = keeper
		}
	})
	s.guard.services = append(s.guard.services, func(to grpc.ServiceRegistrar) {
		to.RegisterService(counted(rpc.Timers_ServiceDesc), &timers{server: s})
		to.RegisterService(counted(rpc.Operations_ServiceDesc), s.operations)
		grpc_health_v1.RegisterHealthServer(to, &healthService{system: s.system})
	}, func(to grpc.ServiceRegistrar) {
		if server, ok := to.(reflection.GRPCServer); ok {
			reflection.RegisterV1(server)
		}
	})
}

// Address is the host:port under which peers reach the System.
func (s *Server) Address() string { return s.system.ActorSystem().Address() }

// Stop ends all links and listens no more. It comes after the System's Stop,
// which answers what is under way. A second Stop does nothing.
func (s *Server) Stop() {
	_ = s.system.ActorSystem().Root.StopFuture(s.router).Wait() // it holds nothing that could hang
	s.guard.stop()
}

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
