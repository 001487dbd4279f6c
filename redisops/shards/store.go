package shards

import (
	"context"
	"crypto/rand"
	"embed"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	lua                 = scripts.NewSet("shards", luaFiles, timers.Parts())
	layoutScript        = lua.Load("layout")
	pinScript           = lua.Load("pin")
	unpinScript         = lua.Load("unpin")
	takeScript          = lua.Load("take")
	arriveScript        = lua.Load("arrive")
	dropScript          = lua.Load("drop")
	takeEntriesScript   = lua.Load("take_entries")
	arriveEntriesScript = lua.Load("arrive_entries")
	takeCountsScript    = lua.Load("take_counts")
	arriveCountsScript  = lua.Load("arrive_counts")
	arriveRunsScript    = lua.Load("arrive_runs")
	arriveRatesScript   = lua.Load("arrive_rates")
	raiseScript         = lua.Load("raise")
	leaveScript         = lua.Load("leave")
	leftScript          = lua.Load("left")
	openScript          = lua.Load("open")
	restScript          = lua.Load("rest")
)

// Store is the store of topics that may have shards.
type Store struct {
	timers  *timers.Timers
	layouts *Map
	checked sync.Map // the identity of the layout of each topic that Polled has compared with its record
	offsets sync.Map // of reshardings; see transport
	bounds  stepBounds
	margin  time.Duration // see moveMargin

	// NameMove names a move to another Redis that begins here, as no other one. By default the
	// name is random; a simulation draws it from its seed.
	NameMove func() string
}

// New returns the store of topics with and without shards on the Redis of t. It starts no
// goroutine.
func New(t *timers.Timers) *Store {
	return &Store{timers: t, layouts: newMap(t), bounds: stepBounds{timers: movePage, bytes: moveBytes}, margin: moveMargin, NameMove: rand.Text}
}

// Timers returns the store of physical topics.
func (s *Store) Timers() *timers.Timers { return s.timers }

// Map returns the layouts of topics.
func (s *Store) Map() *Map { return s.layouts }

// layout returns the layout of a topic that is not one of a shard.
func (s *Store) layout(ctx context.Context, topic string) (sharding.Layout, error) {
	if err := layout.CheckLogical(topic); err != nil {
		return sharding.Layout{}, err
	}
	return s.layouts.Of(ctx, topic)
}

// all returns the physical topics that may have data of a topic.
func (s *Store) all(ctx context.Context, topic string) ([]string, error) {
	l, err := s.layout(ctx, topic)
	if err != nil {
		return nil, err
	}
	if l.Plain() {
		return []string{topic}, nil
	}
	return l.All(topic), nil
}

// Physical returns the physical topics that may have data of topics.
func (s *Store) Physical(ctx context.Context, topics ...string) (names []string, err error) {
	for _, topic := range topics {
		all, err := s.all(ctx, topic)
		if err != nil {
			return nil, err
		}
		names = append(names, all...)
	}
	return names, nil
}

// Polled returns the physical topics of a topic that nodes handle now. It looks once whether
// a layout is one that the map has again after a failover.
func (s *Store) Polled(ctx context.Context, topic string) ([]string, error) {
	l, err := s.layout(ctx, topic)
	if err != nil {
		return nil, err
	}
	if at, known := s.checked.Load(topic); !known || at != l.ID {
		_, record, err := s.layouts.record(ctx, topic) // each change writes it
		if err == nil && record.Number > l.Number {
			if err = s.layouts.agree(ctx, topic); err == nil {
				l, err = s.layout(ctx, topic)
			}
		}
		if err != nil && !scripts.IsDenied(err) {
			return nil, err
		}
		s.checked.Store(topic, l.ID)
	}
	if l.Plain() && l.From == 0 {
		return []string{topic}, nil
	}
	now, err := s.now(ctx)
	return l.Polled(topic, now), err
}

// atOnce is how many shards a call asks at once.
const atOnce = 16

// each makes a call for physical topics at once, and returns the answers in their order.
// The error is that of the first topic that has one.
func each[T any](ctx context.Context, names []string, call func(ctx context.Context, name string) (T, error)) ([]T, error) {
	answers, errs := make([]T, len(names)), make([]error, len(names))
	if len(names) == 1 {
		answers[0], errs[0] = call(ctx, names[0])
		return answers, errs[0]
	}
	var calls sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i, name := range names {
		free <- struct{}{}
		calls.Go(func() {
			defer func() { <-free }()
			errs[i] = usercode.Called("a call for a shard", func() (err error) {
				answers[i], err = call(ctx, name)
				return err
			})
		})
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			return answers, err
		}
	}
	return answers, nil
}

// sum adds the numbers that a call returns for each physical topic of a topic. After an
// error it returns the sum of those that succeeded.
func (s *Store) sum(ctx context.Context, topic string, call placedCall[int64]) (total int64, err error) {
	_, err = routed(ctx, s, topic, func(l sharding.Layout) (int64, error) {
		n, err := s.sumRouted(ctx, l, topic, func(ctx context.Context, name string) (int64, error) { return call(ctx, s.at(l), name) })
		total += n
		return n, err
	})
	return total, err
}

func (s *Store) sumRouted(ctx context.Context, l sharding.Layout, topic string, call func(ctx context.Context, name string) (int64, error)) (total int64, err error) {
	names := l.All(topic)
	if l.Moves() { // first where timers leave, so that none is missed
		if total, err = add(ctx, sharding.Names(topic, l.From), call); err == nil {
			err = s.Deliver(ctx, topic)
		}
		if err != nil {
			return total, err
		}
		names = l.Names(topic)
	}
	rest, err := add(ctx, names, call)
	return total + rest, err
}

func add(ctx context.Context, names []string, call func(ctx context.Context, name string) (int64, error)) (total int64, err error) {
	counts, err := each(ctx, names, call)
	for _, n := range counts {
		total += n
	}
	return total, err
}
