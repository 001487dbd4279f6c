package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// Drain makes the gateway refuse new requests and finish the others, stops
// claiming, waits for running handlers until timeout has passed, then ends their
// contexts and releases the rest; OnDead may take as long. It returns the timers
// whose handlers did not return. The runtime does nothing afterwards; Stop ends
// it.
func (rt *Runtime) Drain(timeout time.Duration) (*messages.Drained, error) {
	until := time.Now().Add(timeout)
	bound := timeout + gatewayGrace + poller.DrainGrace + poller.DrainFlush + observe.DeadHookGrace
	future := rt.system.Root.RequestFuture(rt.pid, &messages.Drain{Timeout: durationpb.New(timeout)}, bound)
	answer, err := future.Result()
	if err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	drained, ok := answer.(*messages.Drained)
	if !ok {
		return nil, fmt.Errorf("drain: unexpected answer %T", answer)
	}
	if soon := time.Now().Add(observe.DeadHookGrace); until.Before(soon) {
		until = soon // includes timers that were dead-lettered at the end
	}
	rt.deadHook.End(until, poller.ErrDraining)
	return drained, nil
}

// gatewayLate reports that the gateway takes too long to drain.
type gatewayLate struct{}

// rootDrain is a drain: first of the gateway, then of the pollers, whose answers
// it collects.
type rootDrain struct {
	requesters []*actor.PID
	until      time.Time           // when handlers' contexts end
	late       *time.Timer         // ends the gateway's part
	pollers    bool                // the pollers are draining
	answered   map[string]struct{} // the topics in result
	result     messages.Drained
}

// answeredBy reports whether a topic's poller has answered.
func (d *rootDrain) answeredBy(topic string) bool {
	_, answered := d.answered[topic]
	return answered
}

// startDrain asks the gateway to drain, and then every poller. Further requests
// get the same answer.
func (s *supervisor) startDrain(m *messages.Drain, requester *actor.PID) {
	if s.drain != nil {
		s.drain.requesters = append(s.drain.requesters, requester)
		s.answerDrain()
		return
	}
	for _, beat := range s.beats {
		s.root.Stop(beat) // this node would not handle what it fires
	}
	s.beats = nil
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

// drainPollers continues the drain when the gateway is done.
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

// pauseForDrain keeps a topic's poller from claiming, in this incarnation and the
// next.
func (s *supervisor) pauseForDrain(name string) {
	if t, ok := s.rt.topic(name); ok {
		t.Change(func(state *poller.State) { state.Paused = true })
	}
}

// drainRestarted asks a restarted poller to drain, if its previous incarnation
// was asked to.
func (s *supervisor) drainRestarted(poller *actor.PID) {
	if r := s.removals[topicOf(poller)]; r != nil && r.poller.Equal(poller) {
		s.drainPoller(poller, r.until)
	}
	if s.drain != nil && s.drain.pollers {
		s.drainPoller(poller, s.drain.until)
	}
}

func (s *supervisor) drainPoller(poller *actor.PID, until time.Time) {
	left := max(time.Until(until), 0)
	s.root.RequestWithCustomSender(poller, &messages.Drain{Timeout: durationpb.New(left)}, s.self)
}

// topicDrained processes the first answer of each topic: a poller that was
// restarted after its answer answers again.
func (s *supervisor) topicDrained(m *messages.TopicDrained) {
	if s.drain == nil || s.drain.answeredBy(m.GetTopic()) {
		return
	}
	s.drain.result.Topics = append(s.drain.result.Topics, m)
	s.drain.answered[m.GetTopic()] = struct{}{}
	s.answerDrain()
}

func (s *supervisor) answerDrain() {
	if !s.drain.pollers || len(s.drain.answered) < len(s.pollers) { // the latter spares a search for each answer
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
