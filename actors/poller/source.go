package poller

import (
	"context"

	"github.com/wakebell/wakebell/messages/exchange"
)

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

	// RemoveOrphans removes the remains of timers that no longer exist. It is called after
	// a reply with Orphans set, and bounds its own work.
	RemoveOrphans(ctx context.Context) (removed int, err error)
}

// Hints make pollers poll sooner than planned.
type Hints interface {
	// Listen delivers hints about the named sources until ctx ends or listening
	// is refused. It reconnects by itself and delivers exchange.HintSubscribed
	// whenever the subscription is (re)established.
	Listen(ctx context.Context, sources []string, deliver func(exchange.Hint)) error
}
