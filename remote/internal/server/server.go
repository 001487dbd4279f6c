package server

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/subscriptions"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
)

// Server serves a System to other processes: its gateway, its gates and its
// reminders, subscriptions and operations.
type Server struct {
	guard  *peer.Guard
	system *wakebell.System
	router *actor.PID // of subscriptions
	gates  *actor.PID

	operations *operations
	waits      *limits.Budget // requests of HTTP that wait
}

// Start listens and accepts peers. Call it before the System's Start.
func Start(sys *wakebell.System, cfg peer.Settings) (*Server, error) {
	actors := sys.ActorSystem()
	cfg.Metrics = metrics.New(metrics.Options{Provider: sys.MeterProvider()})
	g := peer.NewGuard(actors, cfg)
	g.Queues, g.Reminders = access.NewQueueKeys(sys, cfg.Queues), access.NewReminderTopics(sys)
	s := &Server{guard: g, system: sys, operations: newOperations(sys, g), waits: limits.NewBudget(limits.Waits)}
	g.Measure(s.waits)
	s.gates = actors.NewLocalPID(strings.TrimSuffix(sys.Gateway().GetId(), "gateway") + "gates")
	s.Open()
	if err := g.Listen(); err != nil {
		return nil, err
	}
	if err := s.spawn(); err != nil {
		g.Stop()
		return nil, err
	}
	g.Serve()
	return s, nil
}

// routerSuffix is the name of the router of subscriptions, after the System's name.
const routerSuffix = "-subscriptions"

// spawn starts the router of subscriptions. It must come after Listen, because the
// router needs an address.
func (s *Server) spawn() error {
	gateway := s.system.Gateway().GetId()
	name := strings.TrimSuffix(gateway, "/gateway") + routerSuffix
	props := subscriptions.RouterProps(s.system, s.guard)
	router, err := s.system.ActorSystem().Root.SpawnNamed(props, name)
	if err != nil {
		return err
	}
	s.router, s.guard.Router = router, router.GetId()
	s.guard.Filter.Open(gateway, func(e *peer.Entry) {
		for _, kind := range wire.Subscribing {
			e.Takes[kind] = router.GetId()
		}
	})
	return nil
}

// Open sets what peers may send, and to which actors.
func (s *Server) Open() {
	gateway := s.system.Gateway().GetId()
	s.guard.Filter.Open(gateway, func(e *peer.Entry) {
		e.Watch = true
		for _, kind := range wire.Requests {
			e.Takes[kind] = gateway
		}
		for _, kind := range wire.Turning {
			e.Takes[kind] = s.gates.GetId()
		}
	})
	s.guard.Filter.Open(s.gates.GetId(), func(e *peer.Entry) { e.Terminated = true })
	keeper := s.system.Reminders().PID().GetId()
	s.guard.Filter.Open(keeper, func(e *peer.Entry) {
		e.Watch = true
		for _, kind := range slices.Concat(wire.Reminding, wire.Reminded) {
			e.Takes[kind] = keeper
		}
	})
	s.guard.CarryOut = carryOutOperation
	s.guard.Services = append(s.guard.Services, func(to grpc.ServiceRegistrar) {
		to.RegisterService(countedService(rpc.Timers_ServiceDesc), &timers{server: s})
		to.RegisterService(countedService(rpc.Operations_ServiceDesc), s.operations)
		grpc_health_v1.RegisterHealthServer(to, &healthService{system: s.system})
	}, func(to grpc.ServiceRegistrar) {
		if server, ok := to.(reflection.GRPCServer); ok {
			reflection.RegisterV1(server)
		}
	})
}

// Stop ends all links and closes the listener.
func (s *Server) Stop() {
	_ = s.system.ActorSystem().Root.StopFuture(s.router).Wait() // the router always stops
	s.guard.Stop()
}

// SetTokens replaces the tokens, and ends what principals without a token have.
func (s *Server) SetTokens(tokens, certificates map[string]string) error {
	if err := s.guard.SetTokens(tokens, certificates); err != nil {
		return err
	}
	s.rightsChanged()
	return nil
}

// SetRights replaces the rights, and ends operations, subscriptions and turns that are no
// longer permitted.
func (s *Server) SetRights(granted *rights.Grants) error {
	if granted == nil || s.guard.Rights.Load() == nil {
		return argument.Invalid("Rights", "whether there are any is decided by Serve")
	}
	s.guard.Rights.Store(granted)
	s.rightsChanged()
	return nil
}

func (s *Server) rightsChanged() {
	root := s.system.ActorSystem().Root
	root.Send(s.router, subscriptions.RightsChanged{})
	root.Send(s.gates, gates.RightsChanged{Permits: func(principal, gate string) bool {
		return s.guard.MayHandle(principal, rights.KindGate, gate)
	}})
	s.operations.recheck()
}
