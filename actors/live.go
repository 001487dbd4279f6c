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
	// ErrTopicTaken says that the runtime has the topic already.
	ErrTopicTaken = errors.New("the topic has a poller already")
	// ErrNotRunning says that the System is not started, or is stopped.
	ErrNotRunning = errors.New("system is not running")
	// ErrNoAnswer says that the supervisor has ended, or crashes again and again.
	ErrNoAnswer = errors.New("no answer")
)

// Requests of a Runtime to its supervisor, each answered with liveReply.
type (
	addTopic    struct{ topic *poller.Shared }
	removeTopic struct {
		name    string
		timeout time.Duration
	}
	tuneTopic struct {
		name   string
		change func(*poller.State)
	}
	areYouThere struct{} // every Receive before it is over
	liveReply   struct {
		drained *messages.TopicDrained // of removeTopic
		err     error
	}
)

// removal is a topic that is drained and then stopped.
type removal struct {
	until      time.Time // when handlers' contexts end
	requesters []*actor.PID
	drained    *messages.TopicDrained // nil: not yet
	poller     *actor.PID
}

// live answers a request that needs no waiting.
func (s *supervisor) live(c actor.Context, err error) { c.Respond(liveReply{err: err}) }

// tune changes what is in force of a topic and tells its poller.
func (s *supervisor) tune(m tuneTopic) error {
	t, ok := s.rt.topic(m.name)
	if !ok {
		return fmt.Errorf("%w: %q", ErrNoTopic, m.name)
	}
	t.Change(m.change)
	s.root.Send(s.pollers[m.name], poller.Tuned{})
	return nil
}

// add spawns the poller of a new topic.
func (s *supervisor) add(c actor.Context, t *poller.Shared) error {
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
	s.rt.keep(t)
	s.listenSoon()
	return nil
}

func (s *supervisor) spawn(c actor.Context, t *poller.Shared) error {
	name := t.Source.Name()
	pid, err := c.SpawnNamed(poller.Props(t), pollerName(name))
	if err != nil { // topics are unique, so the name was taken by a stranger
		return fmt.Errorf("spawn the poller of %q: %w", name, err)
	}
	s.pollers[name] = pid
	return nil
}

// remove drains a topic; its poller is stopped once it has answered, and the
// requester told once it has stopped, so that the topic can be added again.
func (s *supervisor) remove(m removeTopic, requester *actor.PID) {
	pid := s.pollers[m.name]
	if pid == nil {
		s.root.Send(requester, liveReply{err: fmt.Errorf("%w: %q", ErrNoTopic, m.name)})
		return
	}
	if r := s.removals[m.name]; r != nil {
		r.requesters = append(r.requesters, requester)
		return
	}
	s.retire(m.name)
	s.removals[m.name] = &removal{until: time.Now().Add(m.timeout), requesters: []*actor.PID{requester}, poller: pid}
	s.askToDrain(pid, s.removals[m.name].until)
}

// removed takes the answer of a poller that is to go.
func (s *supervisor) removed(c actor.Context, m *messages.TopicDrained) {
	if r := s.removals[m.GetTopic()]; r != nil && r.drained == nil {
		r.drained = m
		c.Stop(r.poller)
	}
}

// stopped forgets a poller that has gone.
func (s *supervisor) stopped(who *actor.PID) {
	for name, r := range s.removals {
		if r.drained == nil || !r.poller.Equal(who) {
			continue
		}
		delete(s.removals, name)
		delete(s.pollers, name)
		s.rt.forget(name)
		s.listenSoon()
		for _, requester := range r.requesters {
			s.root.Send(requester, liveReply{drained: r.drained})
		}
		if s.drain != nil { // a poller that stopped cannot answer any more
			s.answerDrain()
		}
		return
	}
}

// Add gives the runtime a topic while it runs. Errors: ErrTopicTaken, or
// ErrDraining.
func (rt *Runtime) Add(t poller.Topic) error {
	_, err := rt.ask(addTopic{rt.newTopic(t)}, liveTimeout)
	return err
}

// Remove drains a topic as Drain does and forgets it: its counters too. The
// timers stay in the source. Error: ErrNoTopic.
func (rt *Runtime) Remove(name string, timeout time.Duration) (*messages.TopicDrained, error) {
	return rt.ask(removeTopic{name, timeout}, timeout+poller.DrainGrace+poller.DrainFlush+liveTimeout)
}

// Tune changes the settings of a topic while it runs. Error: ErrNoTopic.
func (rt *Runtime) Tune(name string, change func(*poller.Settings)) error {
	_, err := rt.ask(tuneTopic{name, func(s *poller.State) { change(&s.Settings) }}, liveTimeout)
	return err
}

// Pause keeps a topic's poller from claiming, or lets it claim again. What
// runs goes on. Error: ErrNoTopic.
func (rt *Runtime) Pause(name string, paused bool) error {
	_, err := rt.ask(tuneTopic{name, func(s *poller.State) { s.Paused = paused }}, liveTimeout)
	return err
}

// State returns the settings that are in force for a topic, and whether it is
// paused. Error: ErrNoTopic.
func (rt *Runtime) State(name string) (s poller.Settings, paused bool, err error) {
	t, ok := rt.topic(name)
	if !ok {
		return poller.Settings{}, false, fmt.Errorf("%w: %q", ErrNoTopic, name)
	}
	state := t.State.Load()
	return state.Settings, state.Paused, nil
}

// liveTimeout bounds the wait for a supervisor, which never blocks; only one
// that crashed again and again takes so long.
const liveTimeout = 5 * time.Second

func (rt *Runtime) ask(request any, timeout time.Duration) (*messages.TopicDrained, error) {
	answer, err := rt.system.Root.RequestFuture(rt.pid, request, timeout).Result()
	if err != nil {
		return nil, fmt.Errorf("supervisor %q: %w: %w", rt.name, ErrNoAnswer, err)
	}
	r, ok := answer.(liveReply)
	if !ok {
		return nil, fmt.Errorf("supervisor %q: unexpected answer %T", rt.name, answer)
	}
	return r.drained, r.err
}
