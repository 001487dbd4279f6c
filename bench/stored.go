package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
)

// stored is how the servers of a contender store what they acknowledge.
type stored struct {
	name    string
	args    []string // options of redis-server
	replica bool     // a replica follows, which stores likewise
	durable bool     // PostgreSQL waits for its disk
}

// persistences are those that are compared: none, as in all other trials, and those of
// docs/operations.md.
var persistences = []stored{
	{name: "none"},
	{name: "everysec", args: []string{"--appendonly", "yes", "--appendfsync", "everysec"}},
	{name: "always", args: []string{"--appendonly", "yes", "--appendfsync", "always"}},
	{name: "replica", args: []string{"--appendonly", "yes", "--appendfsync", "everysec"}, replica: true},
}

const (
	replicaStart   = 30 * time.Second // in which a replica has to follow
	replicaTimeout = 10 * time.Second // for which a schedule call waits for it
)

// persistence are the headlines on servers that store on disk.
func persistence() []trial {
	deliver := trial{name: "persistence-deliver", about: "timers that are due, by what the servers store"}
	callers := trial{name: "persistence-schedule-50", about: "one timer a call, 50 callers; with a replica each waits for it"}
	batches := trial{name: "persistence-schedule-batch", about: "batches of 500, by what the servers store"}
	steadily := trial{name: "persistence-steady-2000", about: "2,000 timers/s on one topic, by what the servers store"}
	for _, p := range persistences {
		var acknowledged []wakebell.ScheduleOption
		if p.replica {
			acknowledged = []wakebell.ScheduleOption{wakebell.WithReplicas(1, replicaTimeout)}
		}
		deliver.add("wakebell", p, node(200, 100))
		callers.add("wakebell", p, scheduleCalls(concurrentCalls, concurrency, acknowledged...))
		batches.add("wakebell", p, scheduleBatches(batchSize, acknowledged...))
		steadily.add("wakebell", p, steady{topics: 1, rate: 2000, bytes: 100, window: automatic}.run)
		if p.replica {
			continue // the peers cannot wait for one
		}
		deliver.add("asynq", p, asynqServer(500))
		deliver.add("bullmq", p, bullMQ("handle", 100))
		callers.add("asynq", p, enqueueCalls)
		batches.add("bullmq", p, bullMQ("add", 100))
		steadily.add("asynq", p, steadyAsynq(2000, 0))
		steadily.add("bullmq", p, steadyBullMQ(2000))
	}
	for _, p := range []stored{{name: "none"}, {name: "fsync", durable: true}} {
		deliver.add("river", p, riverWorkers(2000, 2*time.Millisecond))
		deliver.add("graphile", p, graphile(24))
		callers.add("river", p, insertRiver)
		batches.add("river", p, insertRiverBatches(batchSize))
		steadily.add("river", p, steadyRiver(2000))
	}
	return []trial{deliver, callers, batches, steadily}
}

// add lets a contender take part whose servers store in some way.
func (t *trial) add(who string, p stored, run func(context.Context, *world) (sample, error)) {
	t.contenders = append(t.contenders, contender{who + "-" + p.name, p.servers(run)})
}

// servers runs a contender in a world of its own servers.
func (p stored) servers(run func(context.Context, *world) (sample, error)) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (s sample, err error) {
		own := *w
		own.postgres, own.durable = nil, p.durable
		if own.server, err = redistest.Launch(p.args...); err != nil {
			return nil, err
		}
		own.rdb = own.client(4)
		defer func() { err = errors.Join(err, own.close()) }()
		if p.replica {
			follower, err := follow(ctx, own.server.Addr, p.args)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, follower.Close()) }()
		}
		s, err = run(ctx, &own)
		w.profile = own.profile
		return s, err
	}
}

// follow starts a replica of a server and waits until it follows.
func follow(ctx context.Context, master string, args []string) (*redistest.Server, error) {
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return nil, err
	}
	replica, err := redistest.Launch(append(args, "--replicaof", host+" "+port)...)
	if err != nil {
		return nil, err
	}
	rdb := redis.NewClient(&redis.Options{Addr: replica.Addr})
	defer func() { _ = rdb.Close() }()
	ctx, cancel := context.WithTimeout(ctx, replicaStart)
	defer cancel()
	err = untilEvery(ctx, 20*time.Millisecond, func() bool {
		info, err := rdb.InfoMap(ctx, "replication").Result()
		return err == nil && info["Replication"]["master_link_status"] == "up"
	})
	if err != nil {
		return nil, errors.Join(err, replica.Close())
	}
	return replica, nil
}
