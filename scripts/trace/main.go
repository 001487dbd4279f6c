// Trace is built with coverage by scripts/trace.sh: it runs one way of a timer once,
// after the same way was warm, and writes the counters of what ran to a directory.
//
//	trace schedule|deliver|subscribe DIRECTORY
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"runtime/coverage"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// warm is how many timers go the way before the one that is counted.
const warm = 20

var topic = wakebell.NewTopic[string]("traced")

var ways = map[string]func(context.Context, *redis.Client, counted) error{
	"schedule": schedule, "deliver": deliver, "subscribe": subscribe,
}

// counted runs a part of a way and writes what ran meanwhile.
type counted func(part func() error) error

func main() {
	if len(os.Args) != 3 || ways[os.Args[1]] == nil {
		log.Fatal("usage: trace schedule|deliver|subscribe DIRECTORY")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, way, dir string) error {
	server, err := redistest.Launch()
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	err = ways[way](ctx, rdb, func(part func() error) error {
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		return errors.Join(part(), coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir))
	})
	return errors.Join(err, rdb.Close(), server.Close())
}

// schedule is one call of Topic.Schedule, from the caller until its result.
func schedule(ctx context.Context, rdb *redis.Client, count counted) error {
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	c, err := wakebell.NewClient(conn)
	for i := range warm {
		if err == nil {
			_, err = topic.Schedule(ctx, c, "x", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
		}
	}
	if err != nil {
		return err
	}
	return count(func() error {
		_, err := topic.Schedule(ctx, c, "x", wakebell.ID("last"), wakebell.In(time.Hour))
		return err
	})
}

// deliver is a timer from shortly before its instant until Redis has its ack, on a node that handled
// timers of the topic before.
func deliver(ctx context.Context, rdb *redis.Client, count counted) error {
	handled := make(chan struct{}, warm)
	ack := hold(rdb)
	conn, err := connection.New(rdb, connection.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(quietActors(), conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			handled <- struct{}{}
			return nil
		}),
	}})
	if err == nil {
		err = sys.Start(ctx)
	}
	if err != nil {
		return err
	}
	if err := each(ctx, sys.Client(), handled); err != nil {
		return err
	}
	return errors.Join(last(ctx, sys.Client(), ack, handled, count), sys.Stop())
}

// subscribe is a timer that a node leases to a subscriber in another ActorSystem, from
// shortly before its instant until Redis has the subscriber's ack.
func subscribe(ctx context.Context, rdb *redis.Client, count counted) error {
	ack := hold(rdb)
	conn, err := connection.New(rdb, connection.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(quietActors(), conn, wakebell.Config{})
	if err != nil {
		return err
	}
	node, err := remote.Serve(sys, remote.Config{Address: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer node.Stop()
	if err := sys.Start(ctx); err != nil {
		return err
	}
	peer, err := remote.Dial(ctx, node.Address(), nil, remote.DialConfig{})
	if err != nil {
		return errors.Join(err, sys.Stop())
	}
	defer peer.Close()
	handled := make(chan struct{}, warm)
	subscribing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- peer.Subscribe(subscribing, remote.Subscription{Topic: topic.Name(), Name: "traced", Credits: warm}, func(context.Context, *messages.Lease) error {
			handled <- struct{}{}
			return nil
		})
	}()
	err = each(ctx, sys.Client(), handled)
	if err == nil {
		err = last(ctx, sys.Client(), ack, handled, count)
	}
	stop()
	return errors.Join(err, <-ended, sys.Stop())
}

// each schedules the first timers, one after the other.
func each(ctx context.Context, c *wakebell.Client, handled <-chan struct{}) error {
	for i := range warm {
		if _, err := topic.Schedule(ctx, c, "x", wakebell.ID(fmt.Sprint(i))); err != nil {
			return err
		}
		<-handled
	}
	return nil
}

// last schedules the timer that is counted, begins the count shortly before its
// instant, and ends it when Redis has its ack: before the node knows.
func last(ctx context.Context, c *wakebell.Client, ack *ack, handled <-chan struct{}, count counted) error {
	if _, err := topic.Schedule(ctx, c, "x", wakebell.ID("last"), wakebell.In(2*time.Second)); err != nil {
		return err
	}
	<-time.After(1900 * time.Millisecond) // calls, events and counts of the timers before are over
	err := count(func() error {
		ack.awaited.Store(true)
		<-handled
		return <-ack.seen
	})
	return errors.Join(err, ack.end())
}

func quietActors() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}
