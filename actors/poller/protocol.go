package poller

import (
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// SettingsChanged tells a poller that its topic's state has changed.
type SettingsChanged struct{}

// Unavailable reports to the supervisor that an exchange failed because Redis is
// unavailable. The poller sends nothing until it receives Probe or Resume.
type Unavailable struct {
	Shard string
	Err   error
}

// Available reports to the supervisor that an exchange was answered.
type Available struct{ Shard string }

// Hold asks a poller to send nothing.
type Hold struct{}

// Probe asks a poller to try Redis once.
type Probe struct{}

// Resume asks a poller to continue, at a random moment within the span.
type Resume struct {
	Within time.Duration
}

// Started reports to the supervisor that an incarnation of a poller begins, which
// does not know the requests to the one before.
type Started struct{ Poller *actor.PID }

func handlerName(n int) string { return "handler-" + strconv.Itoa(n) }

// Health is the health snapshot of a poller. If the poller does not answer, only
// Topic, Silent and LastExchange are set.
type Health struct {
	Topic        string
	Silent       time.Duration // since it first failed to answer; 0: it answers
	LastExchange time.Time     // when the source last answered; zero: never

	DownSince time.Time // since when its Redis has been down; zero: it is up
	Paused    bool      // by this node or by a cluster-wide override
	Draining  bool
	Leases    int   // held: with a handler, or queued for one
	Failures  int   // consecutive failed exchanges, of the topic alone
	Err       error // of the last of them

	Breaker string // state of the circuit breaker; empty: there is none
}

// CheckHealth requests a health snapshot. Answer has room for it.
type CheckHealth struct{ Answer chan<- Health }

func (p *poller) checkHealth(m CheckHealth) {
	v := Health{Topic: p.Source.Name(), Paused: p.paused, Draining: p.drain != nil}
	if p.breaker != nil {
		v.Breaker = p.breaker.State(time.Now()).String()
	}
	for _, s := range p.streams {
		v.Leases += len(s.held)
		if s.failures > v.Failures && !s.waiting {
			v.Failures, v.Err = s.failures, s.err
		}
	}
	select {
	case m.Answer <- v:
	default: // the caller no longer waits
	}
}
