package actors

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// supervisor is the root of a runtime: it spawns a poller per topic, restarts
// what crashes, passes hints on, decides who tries a Redis that is down, and
// leads the drain.
type supervisor struct {
	rt   *Runtime
	self *actor.PID
	root *actor.RootContext

	pollers map[string]*actor.PID
	outage  outage

	stopHints context.CancelFunc
	drain     *rootDrain
}

// rootDrain gathers the answers of the pollers to a drain.
type rootDrain struct {
	requesters []*actor.PID
	until      time.Time // when handlers' contexts end
	result     messages.Drained
}

// begun tells the supervisor that a poller begins a life, which knows nothing
// of what was asked of the one before.
type begun struct{ poller *actor.PID }

func supervisorProps(rt *Runtime) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &supervisor{rt: rt} },
		actor.WithSupervisor(restartPoller.with(rt.random)),
		actor.WithReceiverMiddleware(logCrashes(rt.log)))
}

func (s *supervisor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.start(c)
	case *actor.Stopping, *actor.Restarting:
		s.stop()
	case exchange.Hint:
		s.hint(m)
	case unavailable:
		s.redisDown(m)
	case available:
		s.redisUp()
	case nextProbe:
		s.sendProbe(m)
	case *messages.Drain:
		s.startDrain(m, c.Sender())
	case *messages.TopicDrained:
		s.topicDrained(m)
	case begun:
		if s.drain != nil {
			s.askToDrain(m.poller)
		}
	}
}

func (s *supervisor) start(c actor.Context) {
	s.self, s.root = c.Self(), c.ActorSystem().Root
	s.pollers = make(map[string]*actor.PID, len(s.rt.topics))
	names := make([]string, 0, len(s.rt.topics))
	for _, t := range s.rt.topics {
		name := t.Source.Name()
		pid, err := c.SpawnNamed(pollerProps(t), pollerName(name))
		if err != nil { // topics are unique, so the name was taken by a stranger
			panic(err)
		}
		s.pollers[name] = pid
		names = append(names, name)
	}
	s.listen(names)
}

// listenAgain is how long to go by polling alone after hints were refused.
const listenAgain = time.Minute

// listen passes hints to the supervisor until it stops. Where they are
// refused (a user without channel rights) timers are found by polling.
func (s *supervisor) listen(names []string) {
	ctx, cancel := context.WithCancel(context.Background())
	s.stopHints = cancel
	if s.rt.hints == nil {
		return
	}
	root, self, hints, log := s.root, s.self, s.rt.hints, s.rt.log
	deliver := func(h exchange.Hint) { root.Send(self, h) }
	go func() {
		for ctx.Err() == nil {
			_, err := safely("listening for hints", func() (struct{}, error) {
				return struct{}{}, hints.Listen(ctx, names, deliver)
			})
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return
			}
			log.Warn("no hints: timers due soon are found by polling", "err", err, "again_in", listenAgain)
			select {
			case <-ctx.Done():
			case <-time.After(listenAgain):
			}
		}
	}()
}

func (s *supervisor) stop() {
	if s.stopHints != nil {
		s.stopHints()
	}
	s.outage.stop()
}

func (s *supervisor) hint(h exchange.Hint) {
	if h.Source == "" {
		s.broadcast(h)
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

// startDrain asks every poller to drain; whoever asks while it is under way
// gets the same answer.
func (s *supervisor) startDrain(m *messages.Drain, requester *actor.PID) {
	if s.drain != nil {
		s.drain.requesters = append(s.drain.requesters, requester)
	} else {
		until := time.Now().Add(m.GetTimeout().AsDuration())
		s.drain = &rootDrain{requesters: []*actor.PID{requester}, until: until}
		for _, pid := range s.pollers {
			s.askToDrain(pid)
		}
	}
	s.answerDrain()
}

func (s *supervisor) askToDrain(poller *actor.PID) {
	left := max(time.Until(s.drain.until), 0)
	s.root.RequestWithCustomSender(poller, &messages.Drain{Timeout: durationpb.New(left)}, s.self)
}

// topicDrained takes the first answer of each topic: a poller that was
// restarted after its answer is asked again.
func (s *supervisor) topicDrained(m *messages.TopicDrained) {
	if s.drain == nil || slices.ContainsFunc(s.drain.result.GetTopics(), func(t *messages.TopicDrained) bool {
		return t.GetTopic() == m.GetTopic()
	}) {
		return
	}
	s.drain.result.Topics = append(s.drain.result.Topics, m)
	s.answerDrain()
}

func (s *supervisor) answerDrain() {
	if len(s.drain.result.GetTopics()) < len(s.pollers) {
		return
	}
	for _, requester := range s.drain.requesters {
		s.root.Send(requester, &s.drain.result)
	}
	s.drain.requesters = nil
}

// pollerName is the actor name of a topic's poller. A topic may hold any
// text, an actor's name is a path.
func pollerName(topic string) string { return "poller-" + url.PathEscape(topic) }

func handlerName(n int) string { return "handler-" + strconv.Itoa(n) }
