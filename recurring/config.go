package recurring

import (
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/opened"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/shards"
)

// New returns Schedules on the Redis of conn. It does not call Redis. Errors wrap
// wakebell.ErrInvalid.
func New(conn *connection.Connection) (*Schedules, error) {
	on, err := opened.Of((*opened.Handle)(conn))
	if err != nil {
		return nil, err
	}
	timers, err := on.Timers()
	if err != nil {
		return nil, err
	}
	from, err := on.Reader(timers)
	if err != nil {
		return nil, err
	}
	edge := on.Apart() // the runs have spans of their own
	store := schedulestore.New(shards.New(timers))
	manual := firing.Manual{Store: store, Zone: on.Zone, Maker: firing.Maker{
		Prefix: on.Prefix, Limit: on.PayloadLimit, Celery: on.Celery, Shares: store.Shares, Tracer: edge.Tracer,
	}}
	reads := manual
	if from != timers {
		reads.Store = schedulestore.New(shards.New(from))
	}
	return &Schedules{store, edge, manual, reads, timers.Audit}, nil
}
