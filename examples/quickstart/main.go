// Quickstart schedules a timer and handles it.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
)

// Invoice is the body of the timers.
type Invoice struct {
	Number string
	Cents  int
}

// Invoices is the topic, shared by schedulers and handlers.
var Invoices = wakebell.NewTopic[Invoice]("invoices")

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
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		out.Printf("charge %s: %d cents, attempt %d", t.Body.Number, t.Body.Cents, t.Attempt)
		done() // a real node keeps running
		return nil
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge, wakebell.MaxConcurrent(20))},
	})
	if err != nil {
		return err
	}
	id, err := Invoices.Schedule(ctx, sys.Client(), Invoice{"42", 1999}, wakebell.In(time.Second), wakebell.ID("inv-42"))
	if err != nil {
		return err
	}
	out.Printf("scheduled %s", id)
	return sys.Run(ctx) // until ctx ends, then it drains
}
