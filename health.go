package wakebell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// healthLimit bounds Health where its context has no deadline.
	healthLimit = time.Second
	// probeLimit bounds a request to Redis for which Health no longer waits.
	probeLimit = 10 * time.Second
)

// Health is the liveness and readiness of a System.
type Health struct {
	// Live is false if a poller, or the supervisor of the pollers, has not
	// answered for 30 s, and the process should be restarted. An outage of
	// Redis, a hanging handler or a drain does not make it false, because a
	// restart does not help there.
	Live bool
	// Ready reports whether the System claims timers: it is started and not
	// draining, Redis answers, its hints arrive over the subscription that there
	// is for them, and every poller answers and reaches Redis. A paused topic, or a topic whose own keys fail, does not make it false.
	Ready bool
	// Problems describes what is wrong, for people. A ready System may have some.
	Problems []string

	Redis      error // why Redis is not reachable; nil if it is
	Draining   bool  // the System stops, or has stopped
	ClockSteps wakebelltype.ClockSteps
	Listener   string        // host:port of package remote; empty if nothing listens
	Topics     []TopicHealth // sorted by name
}

// TopicHealth is the health of the poller of one topic.
type TopicHealth struct {
	Topic        string        // with its prefix
	Silent       time.Duration // time for which the poller has not answered; 0 if it answers
	LastExchange time.Time     // when Redis last answered the poller; zero if never
	DownSince    time.Time     // begin of the outage of Redis; zero if there is none
	Behind       time.Duration // time since the first unclaimed timer became due
	Paused       bool          // on this node or on all nodes
	Running      int           // timers that the node holds
	Failures     int           // consecutive requests to Redis that failed for this topic only
	Concurrency  int           // timers or batches that may be handled at once; 0 without AdaptiveConcurrency
	Role         string        // of this node: primary or fallback; empty unless nodes compete for the topic
	Err          error         // error of the last failure; nil if Failures is 0

	// Breaker is the state of the circuit breaker of this node: closed, open or half-open;
	// empty without Breaker. If it is not closed, BreakerSince is when it opened,
	// BreakerUntil when it tries the next timer, and BreakerReason why it opened.
	Breaker                    string
	BreakerSince, BreakerUntil time.Time
	BreakerReason              string

	Group  string // of Weight; empty: the topic is in no group
	Weight int    // in Group
}

// Health checks the System: it queries Redis and every poller, and waits for
// their answers until the deadline of ctx, or for 1 s if ctx has none. It may be
// called at any time. It costs Redis one small command per topic, and none during
// a known outage.
func (s *System) Health(ctx context.Context) Health {
	ctx, cancel := withDefaultTimeout(ctx, healthLimit)
	defer cancel()
	s.mu.Lock()
	runtime, stopping := s.runtime, s.ending()
	s.mu.Unlock()

	h := Health{Live: true, Draining: stopping}
	var snapshot actors.Health
	switch {
	case runtime == nil && !stopping:
		h.problem("not started")
	case runtime != nil && !stopping:
		snapshot = healthOf(ctx, runtime)
		h.Draining, h.ClockSteps = snapshot.Draining, snapshot.ClockSteps
		if address := s.actors.Address(); address != actors.NoAddress {
			h.Listener = address
		}
	}
	if h.Draining {
		h.problem("draining, or stopped")
	}
	h.Ready = len(h.Problems) == 0
	h.alive("the supervisor", snapshot.Silent)
	var reachable []string
	for _, v := range snapshot.Pollers {
		h.topic(v)
		if v.DownSince.IsZero() {
			reachable = append(reachable, v.Topic)
		}
	}
	if len(reachable) > 0 || len(snapshot.Pollers) == 0 {
		h.behind(s.probeRedis(ctx, reachable))
	}
	if deaf := s.store.Deaf(); deaf != "" {
		h.Ready = false
		h.problem("%s", deaf)
	}
	h.Topics = s.joinShards(h.Topics)
	if h.ClockSteps.Count > 0 {
		h.problem("the clock of redis has stepped %d times, last at %s by %v",
			h.ClockSteps.Count, h.ClockSteps.Last.Format(time.RFC3339), h.ClockSteps.By.Round(time.Millisecond))
	}
	return h
}

// healthOf waits for half of the time at most, so that an actor that does not
// answer leaves time for the request to Redis.
func healthOf(ctx context.Context, rt *actors.Runtime) actors.Health {
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

// alive notes for how long an actor has not answered.
func (h *Health) alive(name string, silent time.Duration) {
	if silent == 0 {
		return
	}
	h.Ready = false
	h.Live = h.Live && silent < actors.StuckAfter
	h.problem("%s has not answered for %v", name, silent.Round(time.Millisecond))
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
	if s := v.State; s.Breaker == guard.Open.String() || s.Breaker == guard.HalfOpen.String() {
		h.problem("the circuit breaker of topic %q is %s since %s: %s", v.Topic, s.Breaker, s.BreakerSince.Format(time.RFC3339), s.BreakerReason)
	}
	h.Topics = append(h.Topics, TopicHealth{
		Topic: v.Topic, Silent: v.Silent, LastExchange: v.LastExchange, DownSince: v.DownSince,
		Paused: v.Paused, Running: v.Leases, Failures: v.Failures, Concurrency: v.Concurrency, Role: v.Role, Err: v.Err,
		Breaker: v.State.Breaker, BreakerSince: v.State.BreakerSince, BreakerUntil: v.State.BreakerUntil, BreakerReason: v.State.BreakerReason,
		Group: v.State.Group, Weight: v.State.Weight,
	})
}

// behind adds the result of a probe of Redis.
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

// probe is one request to Redis on behalf of Health.
type probe struct {
	done  chan struct{} // closed when found and err are set
	found []timers.Behind
	err   error
}

// probeRedis starts a probe, or waits for the one in flight, so that probes do
// not pile up while Redis hangs.
func (s *System) probeRedis(ctx context.Context, topics []string) ([]timers.Behind, error) {
	s.mu.Lock()
	p := s.probing
	if p == nil {
		p = &probe{done: make(chan struct{})}
		s.probing = p
		go s.runProbe(context.WithoutCancel(ctx), p, topics)
	}
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.found, p.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: no answer in time", ErrUnavailable)
	}
}

func (s *System) runProbe(ctx context.Context, p *probe, topics []string) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	p.found, p.err = s.store.Behind(ctx, topics)
	s.mu.Lock()
	s.probing = nil
	s.mu.Unlock()
	close(p.done)
}

// HealthHandler returns a handler of liveness and readiness probes: GET /livez
// answers 200 while Health is Live, GET /readyz while it is Ready, and otherwise
// 503. The body is JSON with the reasons. The handler has no authentication, and
// its answers contain topic names and error texts: do not expose it to untrusted
// networks.
func (s *System) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", s.serveHealth(func(h Health) bool { return h.Live }))
	mux.HandleFunc("GET /readyz", s.serveHealth(func(h Health) bool { return h.Ready }))
	return mux
}

func (s *System) serveHealth(good func(Health) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := s.Health(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !good(h) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		// An error means that the client has disconnected.
		_ = json.NewEncoder(w).Encode(h.view())
	}
}

// The body of a response: durations in seconds, instants as RFC 3339 or null,
// errors as text or null.
type (
	healthView struct {
		Live       bool        `json:"live"`
		Ready      bool        `json:"ready"`
		Problems   []string    `json:"problems"`
		Redis      *string     `json:"redis_error"`
		Draining   bool        `json:"draining"`
		ClockSteps clockView   `json:"clock_steps"`
		Listener   string      `json:"listener,omitempty"`
		Topics     []topicView `json:"topics"`
	}
	clockView struct {
		Count int64   `json:"count"`
		Last  *string `json:"last"`
		By    float64 `json:"by_seconds"`
	}
	topicView struct {
		Topic        string  `json:"topic"`
		Silent       float64 `json:"silent_seconds"`
		LastExchange *string `json:"last_exchange"`
		DownSince    *string `json:"down_since"`
		Behind       float64 `json:"behind_seconds"`
		Paused       bool    `json:"paused"`
		Running      int     `json:"running"`
		Failures     int     `json:"failures"`
		Concurrency  int     `json:"concurrency,omitempty"`
		Role         string  `json:"role,omitempty"`
		Err          *string `json:"error"`

		Breaker       string  `json:"breaker,omitempty"`
		BreakerSince  *string `json:"breaker_since,omitempty"`
		BreakerUntil  *string `json:"breaker_until,omitempty"`
		BreakerReason string  `json:"breaker_reason,omitempty"`
		Group         string  `json:"group,omitempty"`
		Weight        int     `json:"weight,omitempty"`
	}
)

func (h Health) view() healthView {
	v := healthView{
		Live: h.Live, Ready: h.Ready, Problems: append([]string{}, h.Problems...),
		Redis: errorText(h.Redis), Draining: h.Draining,
		ClockSteps: clockView{h.ClockSteps.Count, instantText(h.ClockSteps.Last), h.ClockSteps.By.Seconds()},
		Listener:   h.Listener,
		Topics:     make([]topicView, len(h.Topics)),
	}
	for i, t := range h.Topics {
		v.Topics[i] = topicView{
			Topic: t.Topic, Silent: t.Silent.Seconds(), LastExchange: instantText(t.LastExchange),
			DownSince: instantText(t.DownSince), Behind: t.Behind.Seconds(), Paused: t.Paused,
			Running: t.Running, Failures: t.Failures, Concurrency: t.Concurrency, Role: t.Role, Err: errorText(t.Err),
			Breaker: t.Breaker, BreakerSince: instantText(t.BreakerSince), BreakerUntil: instantText(t.BreakerUntil),
			BreakerReason: t.BreakerReason, Group: t.Group, Weight: t.Weight,
		}
	}
	return v
}

func instantText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.Format(time.RFC3339Nano)
	return &text
}

func errorText(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}
