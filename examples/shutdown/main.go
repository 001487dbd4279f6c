// Shutdown shows how a node handles SIGTERM: it claims no more timers, waits for the
// running handlers, ends the contexts of those that take too long, and releases the
// rest to other nodes.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Work is the topic. A body is the duration of its work.
var Work = wakebell.NewTopic[time.Duration]("work")

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
	work := func(ctx context.Context, t wakebell.Timer[time.Duration]) error {
		out.Printf("%s begins", t.ID)
		select {
		case <-time.After(t.Body):
			out.Printf("%s is done", t.ID)
			return nil
		case <-ctx.Done(): // the drain's time is over, or the timer was cancelled
			out.Printf("%s gives up: %v", t.ID, context.Cause(ctx))
			return ctx.Err()
		}
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers:     []wakebell.Handler{wakebell.Handle(Work, work, wakebell.MaxConcurrent(2))},
		DrainTimeout: 3 * time.Second, // the service manager's timeout must be more than 7 s longer
	})
	if err != nil {
		return err
	}
	client := sys.Client()
	_, err = client.Schedule(ctx,
		Work.Draft(2*time.Second, wakebell.ID("short")),
		Work.Draft(time.Hour, wakebell.ID("long")),
		Work.Draft(time.Second, wakebell.ID("waiting"), wakebell.In(10*time.Millisecond)),
	)
	if err != nil {
		return err
	}
	if err := sys.Run(ctx); err != nil && !errors.Is(err, wakebell.ErrUnfinished) {
		return err
	}
	// ctx has ended; the remaining calls need another context.
	return left(context.WithoutCancel(ctx), client, out)
}

// left prints the timers that are left for other nodes.
func left(ctx context.Context, c *wakebell.Client, out *log.Logger) error {
	for info, err := range c.List(ctx, Work.Name(), wakebell.Filter{}, wakebelltype.Page{}) {
		if err != nil {
			return err
		}
		out.Printf("%s is %s for another node, attempts so far: %d", info.ID, info.State, info.Attempts)
	}
	return nil
}
