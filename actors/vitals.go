package actors

import (
	"context"
	"time"
)

// StuckAfter is how long a poller may leave questions unanswered until it is
// taken for dead. A poller that crashed is back within 10 s.
const StuckAfter = 30 * time.Second

// Vitals is how a runtime is.
type Vitals struct {
	Pollers    []PollerVitals // in the order of their topics
	Silent     time.Duration  // since the supervisor first failed to answer; 0: it answers
	Draining   bool
	ClockSteps ClockSteps // of all shards; the last one
}

// PollerVitals is how a poller is. Of one that does not answer nothing is known
// but its Topic, Silent and LastExchange.
type PollerVitals struct {
	Topic        string
	Silent       time.Duration // since it first failed to answer; 0: it answers
	LastExchange time.Time     // when the source last answered; zero: never

	DownSince time.Time // since when its Redis has been down; zero: it is up
	Paused    bool      // by this node or by order of all
	Draining  bool
	Leases    int   // held: with a handler, or on their way to one
	Failures  int   // exchanges in a row that failed, of the topic alone
	Err       error // of the last of them
}

// Messages that ask how somebody is. The channels have room for all answers.
type (
	checkup struct {
		answer  chan<- supervisorVitals
		pollers chan<- PollerVitals
	}
	pollerCheckup struct{ answer chan<- PollerVitals }

	supervisorVitals struct {
		downSince map[string]time.Time // by shard
		draining  bool
	}
)

// Vitals asks all pollers how they are, and waits for their answers until ctx
// ends.
func (rt *Runtime) Vitals(ctx context.Context) Vitals {
	topics := rt.all()
	answer := make(chan supervisorVitals, 1)
	answers := make(chan PollerVitals, len(topics)+16) // some may be added meanwhile
	rt.system.Root.Send(rt.pid, checkup{answer, answers})

	var of supervisorVitals
	alive := false
	said := map[string]PollerVitals{}
	for waiting := true; waiting && (!alive || len(said) < len(topics)); {
		select {
		case of = <-answer:
			alive = true
		case v := <-answers:
			said[v.Topic] = v
		case <-ctx.Done():
			waiting = false
		}
	}

	all := Vitals{Silent: rt.silence("", alive), Draining: of.draining}
	for _, t := range topics {
		name := t.Source.Name()
		v, answered := said[name]
		v.Topic, v.Silent = name, rt.silence(name, answered)
		v.DownSince = of.downSince[t.Source.Shard()]
		v.LastExchange = t.counters.snapshot().LastExchange
		all.Pollers = append(all.Pollers, v)
	}
	all.ClockSteps = rt.clockSteps()
	return all
}

// silence notes whether somebody answered, and returns since when they have not.
func (rt *Runtime) silence(name string, answered bool) time.Duration {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if answered {
		delete(rt.silent, name)
		return 0
	}
	since, known := rt.silent[name]
	if !known {
		since = time.Now()
		rt.silent[name] = since
	}
	return max(time.Since(since), 1)
}

// clock is the watch over the clock of a shard.
func (rt *Runtime) clock(shard string) *clockWatch {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	w := rt.clocks[shard]
	if w == nil {
		if rt.clocks == nil {
			rt.clocks = map[string]*clockWatch{}
		}
		w = &clockWatch{}
		rt.clocks[shard] = w
	}
	return w
}

func (rt *Runtime) clockSteps() (all ClockSteps) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, w := range rt.clocks {
		steps := w.noticed()
		all.Count += steps.Count
		if steps.Last.After(all.Last) {
			all.Last, all.By = steps.Last, steps.By
		}
	}
	return all
}

// checkup answers for the supervisor, and has the pollers answer for themselves.
func (s *supervisor) checkup(m checkup) {
	of := supervisorVitals{downSince: map[string]time.Time{}, draining: s.drain != nil}
	for shard, o := range s.outages {
		of.downSince[shard] = o.since
	}
	select {
	case m.answer <- of:
	default: // nobody waits any more
	}
	s.broadcast(pollerCheckup{answer: m.pollers})
}

func (p *poller) checkup(m pollerCheckup) {
	v := PollerVitals{Topic: p.Source.Name(), Paused: p.paused, Draining: p.drain != nil}
	for _, s := range p.streams {
		v.Leases += len(s.held)
		if s.failures > v.Failures && !s.waiting {
			v.Failures, v.Err = s.failures, s.err
		}
	}
	select {
	case m.answer <- v:
	default: // nobody waits any more
	}
}
