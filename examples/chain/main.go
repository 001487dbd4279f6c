// Chain processes an order in steps: each handler schedules the next step.
//
// A handler that fails or crashes after it has scheduled the next step runs again and
// schedules it again. Therefore the id of a step is derived from the order, and Once
// makes it fire once, even if it has fired before the second schedule.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Order is what is passed from step to step.
type Order struct {
	ID string `json:"id"`
}

// The steps. Each is a topic with its own handlers and retries.
var (
	Pack  = wakebell.NewTopic[Order]("orders.pack")
	Ship  = wakebell.NewTopic[Order]("orders.ship")
	Thank = wakebell.NewTopic[Order]("orders.thank")
)

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
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(conn)
	if err != nil {
		return err
	}
	shop := shop{client, out, done}
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Pack, shop.pack),
		wakebell.Handle(Ship, shop.ship),
		wakebell.Handle(Thank, shop.thank),
	}})
	if err != nil {
		return err
	}
	if err := shop.next(ctx, Pack, Order{"order-7"}, 0); err != nil {
		return err
	}
	return sys.Run(ctx)
}

type shop struct {
	client *wakebell.Client
	out    *log.Logger
	done   func() // ends the example
}

func (s shop) pack(ctx context.Context, t wakebell.Timer[Order]) error {
	s.out.Printf("pack %s", t.Body.ID)
	return s.next(ctx, Ship, t.Body, 100*time.Millisecond)
}

func (s shop) ship(ctx context.Context, t wakebell.Timer[Order]) error {
	s.out.Printf("ship %s, attempt %d", t.Body.ID, t.Attempt)
	if err := s.next(ctx, Thank, t.Body, 100*time.Millisecond); err != nil {
		return err
	}
	if t.Attempt == 1 { // the next step is already scheduled
		return errors.Join(errors.New("the printer is out of labels"), wakebell.RetryIn(4*time.Second))
	}
	s.done() // a real node keeps running
	return nil
}

func (s shop) thank(_ context.Context, t wakebell.Timer[Order]) error {
	s.out.Printf("thank for %s", t.Body.ID)
	return nil
}

// next schedules a step of an order. It is idempotent.
func (s shop) next(ctx context.Context, step wakebell.Topic[Order], o Order, after time.Duration) error {
	scheduled, err := s.client.Schedule(ctx, step.Draft(o,
		wakebell.ID(o.ID), wakebell.In(after), wakebell.IfExists(wakebelltype.PolicyKeep), wakebell.Once(24*time.Hour)))
	if err != nil {
		return fmt.Errorf("next step of %s: %w", o.ID, err)
	}
	s.out.Printf("  %s: %s", step.Name(), scheduled[0].Outcome)
	return nil
}
