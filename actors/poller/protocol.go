package poller

import (
	"context"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
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

// Unprobed reports to the supervisor that a poller cannot try Redis now.
type Unprobed struct{ Shard string }

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

	Concurrency int                    // handlers that may run at once, if that is adaptive; otherwise 0
	State       wakebelltype.NodeState // its breaker and group, as it reports them
	Role        string                 // primary or fallback; empty: the topic is not divided
}

// CheckHealth requests a health snapshot. Answer has room for it.
type CheckHealth struct{ Answer chan<- Health }

func (p *poller) checkHealth(m CheckHealth) {
	v := Health{Topic: p.Source.Name(), Paused: p.paused && !p.withheld, Draining: p.drain != nil}
	if p.breaker != nil {
		p.watchBreaker(time.Now())
	}
	v.State = p.Describe()
	if p.limiter != nil {
		v.Concurrency = p.concurrency
	}
	if p.division != nil {
		v.Role = p.division.Role(time.Now())
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

// Source provides a poller with leases. Package exchange has the contract of its
// exchange.
type Source interface {
	// Name is the topic, unique within a runtime.
	Name() string

	// Shard names the server that stores the source, and never changes. Sources
	// with the same shard are unavailable together, and share a clock.
	Shard() string

	// Exchange settles, extends and claims in one atomic step. Errors that
	// wrap exchange.ErrUnavailable concern the source's server as a whole;
	// any other concerns this source alone. After an error the outcome is
	// unknown, and the poller sends the same request again.
	Exchange(ctx context.Context, req *exchange.Request) (*exchange.Reply, error)

	// RemoveOrphans removes the remains of timers that no longer exist, unless there are so
	// many that timers must have been lost. It is called after a reply with Orphans set, and
	// about every minute after it has left some. It bounds its own work.
	RemoveOrphans(ctx context.Context) (exchange.Swept, error)
}

// Hints make pollers poll sooner than planned.
type Hints interface {
	// Listen delivers hints about the named sources until ctx ends or listening
	// is refused. It reconnects by itself and delivers exchange.HintSubscribed
	// whenever the subscription is (re)established.
	Listen(ctx context.Context, sources []string, deliver func(exchange.Hint)) error
}
