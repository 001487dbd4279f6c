package actors

import (
	"context"
	"net/url"
	"path"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// supervisor is the root actor of a runtime: it spawns a poller per topic and the
// other actors, restarts them, passes hints on, coordinates the probes of a Redis
// that is down, and leads the drain.
type supervisor struct {
	rt   *Runtime
	self *actor.PID
	root *actor.RootContext

	gateway  *actor.PID   // nil: there is none
	beats    []*actor.PID // the schedulers of all parts
	pollers  map[string]*actor.PID
	removals map[string]*topicRemoval // topics that are being removed
	gates    *actor.PID               // nil: there are none
	outages  map[string]*outage       // by shard

	generation int // of the timers of outages

	stopHints      context.CancelFunc
	resubscription resubscription
	stopped        bool // no subscription is made for topics that are removed afterwards
	drain          *rootDrain
}

func supervisorProps(rt *Runtime) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return host.LogCrashes(rt.env.Logger, &supervisor{rt: rt}) },
		actor.WithSupervisor(host.RestartPoller.WithRandom(rt.env.Random)))
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
	case poller.Unprobed:
		s.unprobed(m)
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
	for _, o := range s.rt.Outages() { // of an earlier incarnation; the pollers report what continues
		s.rt.noteOutage(o.Shard, false)
	}
	s.gates = s.spawnIf(c, s.rt.gates != nil, gatesName, func() *actor.Props { return gates.Props(s.rt.gates) })
	// Reminders start before the pollers, whose handlers deliver them.
	s.spawnIf(c, s.rt.reminders != nil, reminders.Name, func() *actor.Props { return reminders.Props(s.rt.env, s.rt.reminders) })
	for _, t := range s.rt.all() {
		if err := s.spawn(c, t); err != nil {
			panic(err) // the name may be free for the next incarnation
		}
	}
	s.gateway = s.spawnIf(c, s.rt.timers != nil, gateway.Name, func() *actor.Props { return gateway.Props(s.rt.env, s.rt.timers, &s.rt.draining) })
	s.beats = nil
	for i, config := range s.rt.beats {
		if s.drain == nil {
			s.beats = append(s.beats, s.spawnIf(c, true, scheduler.NameOf(i), func() *actor.Props { return scheduler.Props(s.rt.env, config) }))
		}
	}
	s.subscribeHints()
}

// spawnIf spawns a child that the configuration may leave out; nil: it does.
func (s *supervisor) spawnIf(c actor.Context, wanted bool, name string, props func() *actor.Props) *actor.PID {
	if !wanted {
		return nil
	}
	pid, err := c.SpawnNamed(props(), name)
	if err != nil {
		panic(err) // the name may be free for the next incarnation
	}
	return pid
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

func (s *supervisor) broadcast(message any) {
	for _, pid := range s.pollers {
		s.root.Send(pid, message)
	}
}

// pollerName is the actor name of a topic's poller. A topic may hold any
// text, an actor's name is a path.
func pollerName(topic string) string { return pollerPrefix + url.PathEscape(topic) }

const pollerPrefix = "poller-"

// topicOf is the topic of a child that is a poller; empty: it is none.
func topicOf(child *actor.PID) string {
	name, is := strings.CutPrefix(path.Base(child.GetId()), pollerPrefix)
	topic, err := url.PathUnescape(name)
	if !is || err != nil {
		return ""
	}
	return topic
}
