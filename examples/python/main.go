// Python shares topics with a Python service on faststream-redis-timers: it
// handles the orders that Python schedules, and schedules receipts that Python
// handles. README.md has the other side.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
)

// Order is what Python publishes as a dict.
type Order struct {
	ID     int    `json:"order_id"`
	Status string `json:"status"`
}

// Orders come from Python; Receipts, of text, go there.
var (
	Orders   = wakebell.NewTopic[Order]("orders")
	Receipts = wakebell.NewTopic[string]("receipts")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	if err := run(ctx, rdb, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb *redis.Client, out *log.Logger) error {
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(conn)
	if err != nil {
		return err
	}
	handle := func(ctx context.Context, t wakebell.Timer[Order]) error {
		_, err := Receipts.Schedule(ctx, client, "hello",
			wakebell.ID(fmt.Sprintf("rc-%d", t.Body.ID)), wakebell.In(time.Hour))
		if err != nil {
			return err
		}
		out.Printf("%s: order %d is %s", t.ID, t.Body.ID, t.Body.Status)
		return nil
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		// Python sends no hint when it schedules. On an idle topic its timers are
		// found at most 1.5 times this interval late.
		wakebell.Handle(Orders, handle, wakebell.MaxPollingInterval(500*time.Millisecond)),
	}})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	out.Print("waiting for orders")
	<-ctx.Done()
	return sys.Stop()
}
