package poller

import (
	"context"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Source is where a poller takes leases from. The contract of its exchange is
// that of package exchange.
type Source interface {
	// Name is the topic, unique within a runtime.
	Name() string

	// Shard names the server that keeps the source, and never changes. Sources
	// with an equal one are unavailable together, and share a clock.
	Shard() string

	// Exchange settles, extends and claims in one atomic step. Errors that
	// wrap exchange.ErrUnavailable concern the source's server as a whole;
	// any other concerns this source alone. After an error the outcome is
	// unknown, and the poller sends the same request again.
	Exchange(ctx context.Context, req *exchange.Request) (*exchange.Reply, error)

	// Heal removes what is left of timers that are gone. It is called after a
	// reply that said Orphans, and is bounded in what it does.
	Heal(ctx context.Context) (removed int, err error)
}

// Hints tells pollers to look sooner than they would.
type Hints interface {
	// Listen delivers hints about the named sources until ctx ends or
	// listening is refused. It reconnects by itself and delivers
	// exchange.HintSubscribed whenever it (again) hears everything.
	Listen(ctx context.Context, sources []string, deliver func(exchange.Hint)) error
}
