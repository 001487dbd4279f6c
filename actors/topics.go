package actors

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

var (
	// ErrNoTopic says that the runtime has no such topic.
	ErrNoTopic = errors.New("no such topic")
	// ErrTopicTaken says that the runtime already has the topic.
	ErrTopicTaken = errors.New("the topic already has a poller")
	// ErrNotRunning says that the System is not started, or is stopped.
	ErrNotRunning = errors.New("system is not running")
	// ErrNoAnswer says that the supervisor has stopped or keeps crashing.
	ErrNoAnswer = errors.New("no answer")
)

// Requests of a Runtime to its supervisor, each answered with topicReply.
type (
	addTopic    struct{ topic *poller.Shared }
	removeTopic struct {
		name    string
		timeout time.Duration
	}
	retuneTopic struct {
		name   string
		change func(*poller.State)
	}
	ping       struct{} // answered after all earlier messages
	topicReply struct {
		drained *messages.TopicDrained // of removeTopic
		err     error
	}
)

// topicRemoval is the removal of a topic: its poller is drained and then stopped.
type topicRemoval struct {
	until      time.Time // when handlers' contexts end
	requesters []*actor.PID
	drained    *messages.TopicDrained // nil: not drained yet
	poller     *actor.PID
}

// respond answers a request.
func (s *supervisor) respond(c actor.Context, err error) { c.Respond(topicReply{err: err}) }

// tuneTopic changes a topic's settings and notifies its poller.
func (s *supervisor) tuneTopic(m retuneTopic) error {
	t, ok := s.rt.topic(m.name)
	if !ok {
		return fmt.Errorf("%w: %q", ErrNoTopic, m.name)
	}
	t.Change(m.change)
	s.root.Send(s.pollers[m.name], poller.SettingsChanged{})
	return nil
}

// addTopic spawns the poller of a new topic.
func (s *supervisor) addTopic(c actor.Context, t *poller.Shared) error {
	name := t.Source.Name()
	switch {
	case s.drain != nil:
		return poller.ErrDraining
	case s.pollers[name] != nil:
		return fmt.Errorf("%w: %q", ErrTopicTaken, name)
	}
	if err := s.spawn(c, t); err != nil {
		return err
	}
	s.rt.addTopic(t)
	s.resubscribeSoon()
	return nil
}

func (s *supervisor) spawn(c actor.Context, t *poller.Shared) error {
	name := t.Source.Name()
	pid, err := c.SpawnNamed(poller.Props(t), pollerName(name))
	if err != nil { // topics are unique: a foreign actor has the name
		return fmt.Errorf("spawn the poller of %q: %w", name, err)
	}
	s.pollers[name] = pid
	return nil
}

// removeTopic drains a topic. Its poller is stopped once it has answered, and the
// requester is answered once it has stopped, so that the topic can be added
// again.
func (s *supervisor) removeTopic(m removeTopic, requester *actor.PID) {
	pid := s.pollers[m.name]
	if pid == nil {
		s.root.Send(requester, topicReply{err: fmt.Errorf("%w: %q", ErrNoTopic, m.name)})
		return
	}
	if r := s.removals[m.name]; r != nil {
		r.requesters = append(r.requesters, requester)
		return
	}
	s.pauseForDrain(m.name)
	s.removals[m.name] = &topicRemoval{until: time.Now().Add(m.timeout), requesters: []*actor.PID{requester}, poller: pid}
	s.drainPoller(pid, s.removals[m.name].until)
}

// topicRemoved processes the answer of a poller that is being removed.
func (s *supervisor) topicRemoved(c actor.Context, m *messages.TopicDrained) {
	if r := s.removals[m.GetTopic()]; r != nil && r.drained == nil {
		r.drained = m
		c.Stop(r.poller)
	}
}

// pollerStopped forgets a poller that has stopped.
func (s *supervisor) pollerStopped(who *actor.PID) {
	name := topicOf(who)
	r := s.removals[name]
	if r == nil || r.drained == nil || !r.poller.Equal(who) {
		return
	}
	delete(s.removals, name)
	delete(s.pollers, name)
	s.rt.removeTopic(name)
	s.resubscribeSoon()
	for _, requester := range r.requesters {
		s.root.Send(requester, topicReply{drained: r.drained})
	}
	if s.drain != nil { // a stopped poller no longer answers
		s.answerDrain()
	}
}

// Add adds a topic while the runtime runs. Errors: ErrTopicTaken, or ErrDraining.
func (rt *Runtime) Add(t poller.Topic) error {
	_, err := rt.ask(addTopic{rt.newTopic(t)}, supervisorTimeout)
	return err
}

// Remove drains a topic as Drain does and forgets it with its counters. Its
// timers stay in the source. Error: ErrNoTopic.
func (rt *Runtime) Remove(name string, timeout time.Duration) (*messages.TopicDrained, error) {
	return rt.ask(removeTopic{name, timeout}, timeout+poller.DrainGrace+poller.DrainFlush+supervisorTimeout)
}

// Tune changes the settings of a topic while it runs. Error: ErrNoTopic.
func (rt *Runtime) Tune(name string, change func(*poller.Settings)) error {
	_, err := rt.ask(retuneTopic{name, func(s *poller.State) {
		settings := *s.Settings
		change(&settings)
		s.Settings = &settings
	}}, supervisorTimeout)
	return err
}

// Pause keeps a topic's poller from claiming, or lets it claim again. Running
// handlers continue. Error: ErrNoTopic.
func (rt *Runtime) Pause(name string, paused bool) error {
	_, err := rt.ask(retuneTopic{name, func(s *poller.State) { s.Paused = paused }}, supervisorTimeout)
	return err
}

// State returns the settings in force for a topic, and whether it is paused.
// Error: ErrNoTopic.
func (rt *Runtime) State(name string) (s poller.Settings, paused bool, err error) {
	t, ok := rt.topic(name)
	if !ok {
		return poller.Settings{}, false, fmt.Errorf("%w: %q", ErrNoTopic, name)
	}
	state := t.State.Load()
	return *state.Settings, state.Paused, nil
}

// supervisorTimeout bounds the wait for the supervisor, which never blocks; only
// one that keeps crashing takes so long.
const supervisorTimeout = 5 * time.Second

func (rt *Runtime) ask(request any, timeout time.Duration) (*messages.TopicDrained, error) {
	answer, err := rt.system.Root.RequestFuture(rt.pid, request, timeout).Result()
	if err != nil {
		return nil, fmt.Errorf("supervisor %q: %w: %w", rt.name, ErrNoAnswer, err)
	}
	r, ok := answer.(topicReply)
	if !ok {
		return nil, fmt.Errorf("supervisor %q: unexpected answer %T", rt.name, answer)
	}
	return r.drained, r.err
}
