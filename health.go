package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/redisops/timers"
)

const (
	// healthLimit bounds Health where its context has no deadline.
	healthLimit = time.Second
	// lookLimit bounds a look at Redis that Health no longer waits for.
	lookLimit = 10 * time.Second
)

// Health is how a System is.
type Health struct {
	// Live is false when a poller, or the supervisor of all of them, has not
	// answered for 30 s: a new process is the cure. A Redis that is down, a
	// handler that hangs, a drain do not make it false, for they are not cured by
	// one.
	Live bool
	// Ready is true while the System takes timers: it is started and not
	// draining, Redis answers, and every poller answers and may exchange. A pause,
	// or a topic that is broken in itself, does not make it false.
	Ready bool
	// Problems are what is wrong, in words; a ready System may have some.
	Problems []string

	Redis      error // why Redis is not reachable; nil: it is
	Draining   bool  // it stops, or has stopped
	ClockSteps ClockSteps
	Listener   string        // host:port at which package remote serves it; empty: actors.NoAddress, or it is not started
	Topics     []TopicHealth // in the order of their names
}

// ClockSteps are the steps of Redis's clock, against the monotonic one of this
// machine, that a System noticed: those of more than 1 s.
type ClockSteps = poller.ClockSteps

// TopicHealth is how the delivery of a topic is.
type TopicHealth struct {
	Topic        string        // with its prefix
	Silent       time.Duration // for how long its poller has not answered; 0: it does
	LastExchange time.Time     // when Redis last answered it; zero: never
	DownSince    time.Time     // since when its Redis has been down; zero: it is not
	Behind       time.Duration // for how long the first timer has been due that no node has
	Paused       bool          // on this node or on all
	Running      int           // timers that are with handlers or on their way there
	Failures     int           // exchanges in a row that failed for this topic alone
	Err          error         // of the last of them; nil: none
}

// Health looks at the System: it asks Redis and every poller, and waits for them
// until the deadline of ctx, or for 1 s where it has none. It may be called at
// any time, and costs Redis one small command per topic, none while an outage is
// known.
func (s *System) Health(ctx context.Context) Health {
	ctx, cancel := withDefaultTimeout(ctx, healthLimit)
	defer cancel()
	s.mu.Lock()
	runtime, stopping := s.runtime, s.stopped != nil
	s.mu.Unlock()

	h := Health{Live: true, Draining: stopping}
	var vitals actors.Health
	switch {
	case runtime == nil && !stopping:
		h.problem("not started")
	case runtime != nil && !stopping:
		vitals = ask(ctx, runtime)
		h.Draining, h.ClockSteps = vitals.Draining, vitals.ClockSteps
		if address := s.actors.Address(); address != actors.NoAddress {
			h.Listener = address
		}
	}
	if h.Draining {
		h.problem("draining, or stopped")
	}
	h.Ready = len(h.Problems) == 0
	h.alive("the supervisor", vitals.Silent)
	var reachable []string
	for _, v := range vitals.Pollers {
		h.topic(v)
		if v.DownSince.IsZero() {
			reachable = append(reachable, v.Topic)
		}
	}
	if len(reachable) > 0 || len(vitals.Pollers) == 0 {
		h.behind(s.lookAtRedis(ctx, reachable))
	}
	if h.ClockSteps.Count > 0 {
		h.problem("the clock of redis has stepped %d times, last at %s by %v",
			h.ClockSteps.Count, h.ClockSteps.Last.Format(time.RFC3339), h.ClockSteps.By.Round(time.Millisecond))
	}
	return h
}

// ask leaves half of the time to the look at Redis, should somebody be silent.
func ask(ctx context.Context, rt *actors.Runtime) actors.Health {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
	defer cancel()
	return rt.Health(ctx)
}

func withDefaultTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func (h *Health) problem(format string, args ...any) {
	h.Problems = append(h.Problems, fmt.Sprintf(format, args...))
}

// alive judges who does not answer.
func (h *Health) alive(who string, silent time.Duration) {
	if silent == 0 {
		return
	}
	h.Ready = false
	h.Live = h.Live && silent < actors.StuckAfter
	h.problem("%s does not answer, for %v", who, silent.Round(time.Millisecond))
}

func (h *Health) topic(v poller.Health) {
	h.alive(fmt.Sprintf("the poller of %q", v.Topic), v.Silent)
	if !v.DownSince.IsZero() {
		h.Ready = false
		if h.Redis == nil {
			h.Redis = fmt.Errorf("%w: since %s", ErrUnavailable, v.DownSince.Format(time.RFC3339))
			h.problem("%v", h.Redis)
		}
	}
	if v.Err != nil {
		h.problem("topic %q backs off: %v", v.Topic, v.Err)
	}
	h.Topics = append(h.Topics, TopicHealth{
		Topic: v.Topic, Silent: v.Silent, LastExchange: v.LastExchange, DownSince: v.DownSince,
		Paused: v.Paused, Running: v.Leases, Failures: v.Failures, Err: v.Err,
	})
}

// behind takes what a look at Redis found.
func (h *Health) behind(found []timers.Behind, err error) {
	if err != nil {
		h.Redis, h.Ready = errors.Join(h.Redis, err), false
		h.problem("%v", err)
		return
	}
	byTopic := make(map[string]timers.Behind, len(found))
	for _, b := range found {
		byTopic[b.Topic] = b
	}
	for i := range h.Topics {
		t := &h.Topics[i]
		b := byTopic[t.Topic]
		t.Behind = b.By
		if b.Err != nil && t.Err == nil {
			t.Err = b.Err
			h.problem("topic %q: %v", t.Topic, b.Err)
		}
	}
}

// look is one look at Redis.
type look struct {
	done  chan struct{} // closed when found and err are set
	found []timers.Behind
	err   error
}

// lookAtRedis looks at Redis, or waits for the look that is under way: one that
// hangs is not joined by others.
func (s *System) lookAtRedis(ctx context.Context, topics []string) ([]timers.Behind, error) {
	s.mu.Lock()
	l := s.looking
	if l == nil {
		l = &look{done: make(chan struct{})}
		s.looking = l
		go s.look(context.WithoutCancel(ctx), l, topics)
	}
	s.mu.Unlock()
	select {
	case <-l.done:
		return l.found, l.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: no answer in time", ErrUnavailable)
	}
}

func (s *System) look(ctx context.Context, l *look, topics []string) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	l.found, l.err = s.store.Behind(ctx, topics)
	s.mu.Lock()
	s.looking = nil
	s.mu.Unlock()
	close(l.done)
}
