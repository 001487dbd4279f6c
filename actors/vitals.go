package actors

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
)

// StuckAfter is how long a poller may leave questions unanswered until it is
// taken for dead. A poller that crashed is back within 10 s.
const StuckAfter = 30 * time.Second

// Vitals is how a runtime is.
type Vitals struct {
	Pollers    []poller.Vitals // in the order of their topics
	Silent     time.Duration   // since the supervisor first failed to answer; 0: it answers
	Draining   bool
	ClockSteps poller.ClockSteps // of all shards; the last one
}

// Messages that ask how somebody is. The channels have room for all answers.
type (
	checkup struct {
		answer  chan<- supervisorVitals
		pollers chan<- poller.Vitals
	}
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
	answers := make(chan poller.Vitals, len(topics)+16) // some may be added meanwhile
	rt.system.Root.Send(rt.pid, checkup{answer, answers})

	var of supervisorVitals
	alive := false
	said := map[string]poller.Vitals{}
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
		v.LastExchange = t.Counters.Snapshot().LastExchange
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
func (rt *Runtime) clock(shard string) *poller.ClockWatch {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	w := rt.clocks[shard]
	if w == nil {
		if rt.clocks == nil {
			rt.clocks = map[string]*poller.ClockWatch{}
		}
		w = &poller.ClockWatch{}
		rt.clocks[shard] = w
	}
	return w
}

func (rt *Runtime) clockSteps() (all poller.ClockSteps) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, w := range rt.clocks {
		steps := w.Noticed()
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
	s.broadcast(poller.Checkup{Answer: m.pollers})
}
