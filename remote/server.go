package remote

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages/rpc"
)

// server serves a System to other processes: its gateway, its gates and its
// reminders, subscriptions, and what operators ask.
type server struct {
	guard  *guard
	system *wakebell.System
	router *actor.PID // of subscriptions
	gates  *actor.PID

	operations *operations
}

// startServer listens, and lets peers in. It comes before the System's Start.
func startServer(sys *wakebell.System, cfg settings) (*server, error) {
	actors := sys.ActorSystem()
	g := newGuard(actors, cfg)
	g.queues = newQueueKeys(sys, cfg.Queues)
	s := &server{guard: g, system: sys, operations: newOperations(sys, g)}
	s.gates = actors.NewLocalPID(strings.TrimSuffix(sys.Gateway().GetId(), "gateway") + "gates")
	s.open()
	if err := g.listen(); err != nil {
		return nil, err
	}
	if err := s.spawn(); err != nil {
		g.stop()
		return nil, err
	}
	g.serve()
	return s, nil
}

// subscriptions is the name of the actor that has the subscriptions of a
// System, after the System's own.
const subscriptions = "-subscriptions"

// spawn starts the actor of the subscriptions. It comes after listen, for it
// has to have an address.
func (s *server) spawn() error {
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
func (s *server) open() {
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
		to.RegisterService(countedService(rpc.Timers_ServiceDesc), &timers{server: s})
		to.RegisterService(countedService(rpc.Operations_ServiceDesc), s.operations)
		grpc_health_v1.RegisterHealthServer(to, &healthService{system: s.system})
	}, func(to grpc.ServiceRegistrar) {
		if server, ok := to.(reflection.GRPCServer); ok {
			reflection.RegisterV1(server)
		}
	})
}

// stop ends all links and listens no more.
func (s *server) stop() {
	_ = s.system.ActorSystem().Root.StopFuture(s.router).Wait() // it holds nothing that could hang
	s.guard.stop()
}

// setTokens replaces the tokens.
func (s *server) setTokens(tokens, certificates map[string]string) error {
	return s.guard.setTokens(tokens, certificates)
}

// rightsChanged has hubs end the subscriptions that are not allowed any more.
type rightsChanged struct{}

// setRights replaces the rights, and ends what goes on by those that are no longer
// there.
func (s *server) setRights(rights *Rights) error {
	if rights == nil || s.guard.rights.Load() == nil {
		return invalid("Rights", "whether there are any is decided by Serve")
	}
	s.guard.rights.Store(rights)
	s.system.ActorSystem().Root.Send(s.router, rightsChanged{})
	s.operations.recheck()
	return nil
}
