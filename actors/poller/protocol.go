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

// Peeker is a Source that can report when its first timer is due at a fraction of
// the cost of an exchange, because it batches the peeks of many topics.
//
// Peeking is a performance feature for nodes with many idle topics: the cost of
// an idle poll drops by an order of magnitude (docs/decisions/0012-peeks.md). A
// poller whose topic is idle sleeps while it is peeked at, and claims when the first
// timer has changed. Topic.NoPeek switches it off; a Source that is no Peeker has
// none.
type Peeker interface {
	// Peek changes nothing. Errors are those of Exchange.
	Peek(ctx context.Context) (exchange.PeekReply, error)
	// Watch peeks at once and then again and again, until answered returns not ok, ctx ends or
	// stop is called. answered gets each answer, and returns when to peek again. It is called
	// by one goroutine at a time and must not wait. stop returns when the next peek would have
	// been sent; zero: one is in flight, and answered may be called once more.
	Watch(ctx context.Context, answered exchange.Answered) (stop func() (next time.Time))
}

// Snoozer is a Source that heeds exchange.Settlement.Snoozed. Of others, a snooze is a failure.
type Snoozer interface {
	Snoozes() bool
}

// snoozes reports whether timers of a source, or of the one that it wraps, can be snoozed.
func snoozes(source any) bool {
	for {
		if s, ok := source.(Snoozer); ok {
			return s.Snoozes()
		}
		w, ok := source.(interface{ Wrapped() any })
		if !ok {
			return false
		}
		source = w.Wrapped()
	}
}

// Announcer lets the nodes of a topic agree which of them polls it first, see package
// division. It needs a Source that is a Peeker.
type Announcer interface {
	// Announce writes an announcement and returns the nodes that are announced.
	Announce(ctx context.Context, a exchange.Announcement) (exchange.Announced, error)
	// AskForHelp asks the announced nodes up to a rank to claim as well.
	AskForHelp(ctx context.Context, rank int) error
}

// Reporter stores the state of a node for a topic, where operators read it without asking
// the node. A life of 0 removes it.
type Reporter interface {
	Report(ctx context.Context, node string, state wakebelltype.NodeState, life time.Duration) error
}
