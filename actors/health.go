package actors

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/wakebelltype"
)

// StuckAfter is how long a poller may leave requests unanswered until it counts
// as dead. A poller that crashed is restarted within 10 s.
const StuckAfter = 30 * time.Second

// Health is the health snapshot of a runtime.
type Health struct {
	Pollers    []poller.Health // in the order of their topics
	Silent     time.Duration   // since the supervisor first failed to answer; 0: it answers
	Draining   bool
	ClockSteps wakebelltype.ClockSteps // of all shards; the last one
}

// Requests for a health snapshot. The channels have room for all answers.
type (
	checkHealth struct {
		answer  chan<- supervisorHealth
		pollers chan<- poller.Health
	}
	supervisorHealth struct {
		downSince map[string]time.Time // by shard
		draining  bool
	}
)

// Health asks all pollers for a health snapshot, and waits for the answers until
// ctx ends.
func (rt *Runtime) Health(ctx context.Context) Health {
	topics := rt.all()
	answer := make(chan supervisorHealth, 1)
	answers := make(chan poller.Health, len(topics)+16) // some may be added meanwhile
	rt.system.Root.Send(rt.pid, checkHealth{answer, answers})

	var of supervisorHealth
	alive := false
	said := map[string]poller.Health{}
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

	all := Health{Silent: rt.unresponsiveFor("", alive), Draining: of.draining}
	for _, t := range topics {
		name := t.Source.Name()
		v, answered := said[name]
		v.Topic, v.Silent = name, rt.unresponsiveFor(name, answered)
		v.DownSince = of.downSince[t.Source.Shard()]
		v.LastExchange = t.Counters.Snapshot().LastExchange
		all.Pollers = append(all.Pollers, v)
	}
	all.ClockSteps = rt.clockSteps()
	return all
}

// unresponsiveFor records whether a poller has answered, and returns for how long
// it has not.
func (rt *Runtime) unresponsiveFor(name string, answered bool) time.Duration {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if answered {
		delete(rt.unresponsive, name)
		return 0
	}
	since, known := rt.unresponsive[name]
	if !known {
		since = time.Now()
		rt.unresponsive[name] = since
	}
	return max(time.Since(since), 1)
}

// clock returns the watch over the clock of a shard.
func (rt *Runtime) clock(shard string) *observe.ClockWatch {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	w := rt.clocks[shard]
	if w == nil {
		if rt.clocks == nil {
			rt.clocks = map[string]*observe.ClockWatch{}
		}
		w = &observe.ClockWatch{}
		rt.clocks[shard] = w
	}
	return w
}

func (rt *Runtime) clockSteps() (all wakebelltype.ClockSteps) {
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

// checkHealth answers for the supervisor, and asks the pollers.
func (s *supervisor) checkHealth(m checkHealth) {
	of := supervisorHealth{downSince: map[string]time.Time{}, draining: s.drain != nil}
	for shard, o := range s.outages {
		of.downSince[shard] = o.since
	}
	select {
	case m.answer <- of:
	default: // the caller no longer waits
	}
	s.broadcast(poller.CheckHealth{Answer: m.pollers})
}
