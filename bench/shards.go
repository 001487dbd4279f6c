package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
)

const (
	shardTimers = 50_000 // of a shard in a run, due at once
	shardRate   = 2000   // timers per second of a shard, one after the other
)

// sharded is a topic whose shards are spread evenly over the masters of a Redis Cluster,
// handled by one node.
type sharded struct {
	shards, masters int
	steady          bool // one after the other; otherwise all are due at once
}

// spread returns contenders by shards and masters.
func spread(steady bool) (all []contender) {
	for _, l := range []sharded{{1, 1, steady}, {4, 1, steady}, {4, 2, steady}, {4, 4, steady}} {
		all = append(all, contender{fmt.Sprintf("%d-on-%d", l.shards, l.masters), l.run})
	}
	return all
}

func (l sharded) run(ctx context.Context, w *world) (_ sample, err error) {
	masters, err := redistest.LaunchCluster(ctx, l.masters)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, masters.Close()) }()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs(), ReadTimeout: time.Minute})
	defer func() { _ = rdb.Close() }()
	name, err := l.evenly(ctx, rdb)
	if err != nil {
		return nil, err
	}
	topic := wakebell.NewTopic[[]byte](name)
	var handled atomic.Int64
	late := make(chan float64, 1<<20)
	conn, err := connection.New(rdb, connection.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	sys, err := wakebell.New(quietSystem(), conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[[]byte]) error {
			handled.Add(1)
			late <- time.Since(t.Activation).Seconds() * 1e3
			return nil
		}, wakebell.Shards(l.shards), wakebell.MaxConcurrent(200)),
	}})
	if err != nil {
		return nil, err
	}
	n, err := l.load(ctx, w, sys.Client(), topic)
	if err != nil {
		return nil, err
	}
	if l.steady {
		if err := sys.Start(ctx); err != nil {
			return nil, err
		}
		if err := wait(ctx, steadyLead/2); err != nil {
			return nil, err
		}
	}
	s, err := measureServers(ctx, masters, n, func() error {
		if !l.steady {
			if err := sys.Start(ctx); err != nil {
				return err
			}
		}
		return untilEvery(ctx, steadyLook, func() bool { return handled.Load() >= int64(n) && ackedBy(sys) >= int64(n) })
	})
	if err = errors.Join(err, sys.Stop()); err != nil {
		return nil, err
	}
	if l.steady {
		for figure, value := range latenessOf(late) {
			s[figure] = value
		}
	}
	s[bothUS] = s[clientUS] + s[redisUS]
	return s, nil
}

// evenly finds a topic of whose shards each master has as many: few shards are seldom
// spread evenly.
func (l sharded) evenly(ctx context.Context, rdb *redis.ClusterClient) (topic string, err error) {
	for i := range 10_000 {
		topic = fmt.Sprint("sharded-", i)
		on, most := map[string]int{}, 0
		for _, name := range (sharding.Layout{Shards: l.shards}).Names(topic) {
			master, err := rdb.MasterForKey(ctx, "{"+name+"}")
			if err != nil {
				return "", err
			}
			on[master.Options().Addr]++
			most = max(most, on[master.Options().Addr])
		}
		if most == l.shards/l.masters {
			return topic, nil
		}
	}
	return "", errors.New("no topic is spread evenly over the masters")
}

// load schedules the timers of a run. It returns 3 s before the first is due if they come
// due one after the other.
func (l sharded) load(ctx context.Context, w *world, client *wakebell.Client, topic wakebell.Topic[[]byte]) (n int, err error) {
	body := make([]byte, 100)
	rate := float64(shardRate * l.shards)
	n = w.many(shardTimers) * l.shards
	if l.steady {
		n = int(w.long(steadyFor).Seconds() * rate)
	}
	first := time.Now().Add(steadyLead + seconds(float64(n)/30_000))
	drafts := make([]wakebell.Draft, n)
	for i := range drafts {
		at := wakebell.In(0)
		if l.steady {
			at = wakebell.At(first.Add(seconds(float64(i) / rate)))
		}
		drafts[i] = topic.Draft(body, wakebell.ID(timerID(i)), at)
	}
	if _, err := client.Schedule(ctx, drafts...); err != nil {
		return 0, err
	}
	if l.steady {
		err = wait(ctx, time.Until(first)-steadyLead)
	}
	return n, err
}

// measureServers is measure for several servers together.
func measureServers(ctx context.Context, servers redistest.Masters, n int, work func() error) (sample, error) {
	var clients []redis.UniversalClient
	for _, server := range servers {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer func() { _ = rdb.Close() }()
		clients = append(clients, rdb)
	}
	before, err := readMeters(ctx, clients...)
	if err != nil {
		return nil, err
	}
	if err := work(); err != nil {
		return nil, err
	}
	after, err := readMeters(ctx, clients...)
	if err != nil {
		return nil, err
	}
	return between(before, after, n), nil
}
