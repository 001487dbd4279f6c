package actors

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// supervisor is the root of a runtime: it spawns a poller per topic and the
// gateway, restarts what crashes, passes hints on, decides who tries a Redis
// that is down, and leads the drain.
type supervisor struct {
	rt   *Runtime
	self *actor.PID
	root *actor.RootContext

	gateway  *actor.PID // nil: there is none
	beat     *actor.PID // the same
	pollers  map[string]*actor.PID
	removals map[string]*topicRemoval // topics on their way out
	gates    *actor.PID               // nil: there are none
	outages  map[string]*outage       // by shard

	generation int // of the timers of outages

	stopHints      context.CancelFunc
	resubscription resubscription
	stopped        bool // by stop: a topic that goes after it is not listened to anew
	drain          *rootDrain
}

// gatewayLate tells the supervisor that the gateway takes too long to drain.
type gatewayLate struct{}

// rootDrain is a drain: first that of the gateway, then that of the pollers,
// whose answers it gathers.
type rootDrain struct {
	requesters []*actor.PID
	until      time.Time           // when handlers' contexts end
	late       *time.Timer         // ends the gateway's part
	pollers    bool                // it is their turn
	answered   map[string]struct{} // the topics of result
	result     messages.Drained
}

// has reports whether a topic's poller has answered.
func (d *rootDrain) answeredBy(topic string) bool {
	_, answered := d.answered[topic]
	return answered
}

func supervisorProps(rt *Runtime) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &supervisor{rt: rt} },
		actor.WithSupervisor(host.RestartPoller.WithRandom(rt.env.Random)),
		actor.WithReceiverMiddleware(host.LogCrashes(rt.env.Logger)))
}

func (s *supervisor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.start(c)
	case *actor.Stopping, *actor.Restarting:
		s.stop()
	case exchange.Hint:
		s.hint(m)
	case poller.Unavailable:
		s.redisDown(m)
	case poller.Available:
		s.redisUp(m)
	case probeDue:
		s.sendProbe(m)
	case checkHealth:
		s.checkHealth(m)
	case *messages.Drain:
		s.startDrain(m, c.Sender())
	case *messages.TopicDrained:
		s.topicDrained(m)
		s.topicRemoved(c, m)
	case resubscribeNow:
		s.resubscribe()
	case poller.Started:
		s.drainRestarted(m.Poller)
	case gateway.Drained:
		s.drainPollers()
	case gatewayLate:
		s.root.Send(s.gateway, gateway.Cut{})
		s.drainPollers()
	case ping:
		s.respond(c, nil)
	case *actor.Terminated:
		s.pollerStopped(m.Who)
	case addTopic:
		s.respond(c, s.addTopic(c, m.topic))
	case gatesPID:
		c.Respond(s.gates)
	case retuneTopic:
		s.respond(c, s.tuneTopic(m))
	case removeTopic:
		s.removeTopic(m, c.Sender())
	}
}

func (s *supervisor) start(c actor.Context) {
	s.self, s.root = c.Self(), c.ActorSystem().Root
	s.pollers, s.removals, s.outages = map[string]*actor.PID{}, map[string]*topicRemoval{}, map[string]*outage{}
	s.gates = s.spawnIf(c, s.rt.gates != nil, gatesName, func() *actor.Props { return gates.Props(s.rt.gates) })
	// Reminders come before the pollers, whose handlers hand them out.
	s.spawnIf(c, s.rt.reminders != nil, reminders.Name, func() *actor.Props { return reminders.Props(s.rt.env, s.rt.reminders) })
	for _, t := range s.rt.all() {
		if err := s.spawn(c, t); err != nil {
			panic(err) // the next incarnation may have a clean slate
		}
	}
	s.gateway = s.spawnIf(c, s.rt.timers != nil, gateway.Name, func() *actor.Props { return gateway.Props(s.rt.env, s.rt.timers, &s.rt.draining) })
	s.beat = s.spawnIf(c, s.rt.beat != nil && s.drain == nil, scheduler.Name, func() *actor.Props { return scheduler.Props(s.rt.env, *s.rt.beat) })
	s.subscribeHints()
}

// spawnIf spawns a child that the configuration may leave out; nil: it does.
func (s *supervisor) spawnIf(c actor.Context, wanted bool, name string, props func() *actor.Props) *actor.PID {
	if !wanted {
		return nil
	}
	pid, err := c.SpawnNamed(props(), name)
	if err != nil {
		panic(err) // the next incarnation may have a clean slate
	}
	return pid
}

// listen passes hints to the supervisor until it stops, or listens anew
// because its topics have changed. Where hints are refused (a user without
// channel rights) timers are found by polling.
func (s *supervisor) subscribeHints() {
	if s.stopHints != nil {
		s.stopHints()
	}
	if s.stopped {
		return
	}
	//nolint:forbidigo // the supervisor's life is its own: stop ends it
	ctx, cancel := context.WithCancel(context.Background())
	s.stopHints = cancel
	if s.rt.hints == nil {
		return
	}
	names := slices.Sorted(maps.Keys(s.pollers))
	root, self, hints, log := s.root, s.self, s.rt.hints, s.rt.env.Logger
	deliver := func(h exchange.Hint) {
		if ctx.Err() == nil { // else nobody is there to read it
			root.Send(self, h)
		}
	}
	s.rt.env.IO.Go(func() {
		for ctx.Err() == nil {
			_, err := host.Recovered("listening for hints", func() (struct{}, error) {
				return struct{}{}, hints.Listen(ctx, names, deliver)
			})
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return
			}
			log.Warn("no hints: timers due soon are found by polling", "err", err, "again_in", host.ResubscribeDelay)
			select {
			case <-ctx.Done():
			case <-time.After(host.ResubscribeDelay):
			}
		}
	})
}

func (s *supervisor) stop() {
	s.stopped = true
	s.resubscription.stop()
	if s.stopHints != nil {
		s.stopHints()
	}
	for _, o := range s.outages {
		o.stop()
	}
	if s.drain != nil && s.drain.late != nil {
		s.drain.late.Stop()
	}
}

func (s *supervisor) hint(h exchange.Hint) {
	if h.Source == "" {
		s.broadcast(h)
		return
	}
	if h.Kind == exchange.HintTail {
		if t, ok := s.rt.topic(h.Source); ok {
			s.rt.tail.Watch(&t.Feed, h.In, h.Watched)
		}
		return
	}
	if pid, ok := s.pollers[h.Source]; ok {
		s.root.Send(pid, h)
	}
}

func (s *supervisor) broadcast(message any) {
	for _, pid := range s.pollers {
		s.root.Send(pid, message)
	}
}

// startDrain asks the gateway to drain, and then every poller; whoever asks
// while it is under way gets the same answer.
func (s *supervisor) startDrain(m *messages.Drain, requester *actor.PID) {
	if s.drain != nil {
		s.drain.requesters = append(s.drain.requesters, requester)
		s.answerDrain()
		return
	}
	if s.beat != nil {
		s.root.Stop(s.beat) // what it fires from now on others would have to handle
		s.beat = nil
	}
	s.drain = &rootDrain{requesters: []*actor.PID{requester}, until: time.Now().Add(m.GetTimeout().AsDuration()), answered: map[string]struct{}{}}
	if s.gateway == nil {
		s.drainPollers()
		return
	}
	s.rt.draining.Store(true)
	root, self := s.root, s.self
	s.drain.late = time.AfterFunc(gatewayGrace, func() { root.Send(self, gatewayLate{}) })
	s.root.Send(s.gateway, gateway.Drain{})
}

// drainPollers goes on with the drain when the gateway's part is over.
func (s *supervisor) drainPollers() {
	if s.drain == nil || s.drain.pollers {
		return
	}
	s.drain.pollers = true
	if s.drain.late != nil {
		s.drain.late.Stop()
	}
	for name, pid := range s.pollers {
		s.pauseForDrain(name)
		s.drainPoller(pid, s.drain.until)
	}
	s.answerDrain()
}

// retire keeps a topic's poller from claiming in this life and in the next.
func (s *supervisor) pauseForDrain(name string) {
	if t, ok := s.rt.topic(name); ok {
		t.Change(func(state *poller.State) { state.Paused = true })
	}
}

// askAgain asks a poller that was restarted to drain, if that was asked of the
// one before.
func (s *supervisor) drainRestarted(poller *actor.PID) {
	for _, r := range s.removals {
		if r.poller.Equal(poller) {
			s.drainPoller(poller, r.until)
		}
	}
	if s.drain != nil && s.drain.pollers {
		s.drainPoller(poller, s.drain.until)
	}
}

func (s *supervisor) drainPoller(poller *actor.PID, until time.Time) {
	left := max(time.Until(until), 0)
	s.root.RequestWithCustomSender(poller, &messages.Drain{Timeout: durationpb.New(left)}, s.self)
}

// topicDrained takes the first answer of each topic: a poller that was
// restarted after its answer is asked again.
func (s *supervisor) topicDrained(m *messages.TopicDrained) {
	if s.drain == nil || s.drain.answeredBy(m.GetTopic()) {
		return
	}
	s.drain.result.Topics = append(s.drain.result.Topics, m)
	s.drain.answered[m.GetTopic()] = struct{}{}
	s.answerDrain()
}

func (s *supervisor) answerDrain() {
	if !s.drain.pollers {
		return
	}
	for name := range s.pollers {
		if !s.drain.answeredBy(name) {
			return
		}
	}
	for _, requester := range s.drain.requesters {
		s.root.Send(requester, &s.drain.result)
	}
	s.drain.requesters = nil
}

// pollerName is the actor name of a topic's poller. A topic may hold any
// text, an actor's name is a path.
func pollerName(topic string) string { return "poller-" + url.PathEscape(topic) }
