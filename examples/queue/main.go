// Queue welcomes each user once: the second message of the same user is
// suppressed, a failed one is retried, and a rejected one is redriven.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/queue"
)

// Welcomes is the queue. A Python service may publish to it, too.
var Welcomes = queue.New[string]("welcomes",
	queue.DeduplicateBy(func(user string) string { return user }),
	queue.DeduplicationWindow(24*time.Hour),
	queue.FreeKeyOnFailure())

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	if err := run(ctx, rdb, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb *redis.Client, out *log.Logger) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	greet := func(_ context.Context, m wakebell.Timer[string]) error {
		switch {
		case m.Body == "eve":
			out.Printf("no such user: %s", m.Body)
			done() // a real node keeps running
			return wakebell.Reject(errors.New("no such user"))
		case m.Attempt == 1:
			out.Printf("%s cannot be reached, try again", m.Body)
			return wakebell.RetryIn(50 * time.Millisecond)
		}
		out.Printf("welcome, %s", m.Body)
		_, err := Welcomes.Publish(ctx, client(rdb).Queues(), "eve")
		return err
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.HandleQueue(Welcomes, greet, wakebell.MaxConcurrent(1))},
	})
	if err != nil {
		return err
	}
	for range 2 {
		fresh, err := Welcomes.Publish(ctx, sys.Client().Queues(), "ann")
		if err != nil {
			return err
		}
		out.Printf("published ann: %v", fresh)
	}
	if err := sys.Run(ctx); err != nil {
		return err
	}
	after := context.WithoutCancel(ctx)
	n, err := queue.Redrive(after, sys.Client().Queues(), Welcomes.Keys(), Welcomes.RedriveOptions())
	out.Printf("redriven: %d", n)
	return err
}

func client(rdb *redis.Client) *wakebell.Client {
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		log.Fatal(err)
	}
	c, err := wakebell.NewClient(conn)
	if err != nil {
		log.Fatal(err)
	}
	return c
}
