// Redrive shows how dead letters become timers again: a handler rejects bodies that it
// cannot parse, and a new version of the handler can.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Prices is the topic. A body is a price as text.
var Prices = wakebell.NewTopic[string]("prices")

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
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(conn)
	if err != nil {
		return err
	}
	for id, price := range map[string]string{"tea": "2.50", "cake": "3,20"} {
		if _, err := Prices.Schedule(ctx, client, price, wakebell.ID(id)); err != nil {
			return err
		}
	}
	out.Print("the first version")
	if err := deploy(ctx, rdb, out, strconv.ParseFloat, 2); err != nil {
		return err
	}
	for letter, err := range client.DeadLetters(ctx, Prices.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		if err != nil {
			return err
		}
		out.Printf("dead: %s, %s", letter.ID, letter.Reason)
	}

	done, err := client.Redrive(ctx, Prices.Name(), wakebelltype.RedriveOptions{
		Filter: wakebelltype.DeadFilter{Reason: "invalid syntax"}, // only those that the new version can handle
		Rate:   50,                                                // per second, so as not to overload the handler
	})
	if err != nil {
		return err
	}
	out.Printf("redriven: %d", done.Redriven)
	out.Print("the second version")
	return deploy(ctx, rdb, out, parseWithComma, 1)
}

// parse reads a number, as strconv.ParseFloat does.
type parse func(text string, bits int) (float64, error)

func parseWithComma(text string, bits int) (float64, error) {
	return strconv.ParseFloat(strings.Replace(text, ",", ".", 1), bits)
}

// deploy runs a version of the node until it has seen n timers.
func deploy(ctx context.Context, rdb *redis.Client, out *log.Logger, read parse, n int) error {
	seen := make(chan struct{}, n)
	label := func(_ context.Context, t wakebell.Timer[string]) error {
		defer func() { seen <- struct{}{} }()
		price, err := read(t.Body, 64)
		if err != nil {
			return wakebell.Reject(fmt.Errorf("price: %w", err)) // a retry would not help
		}
		out.Printf("%s: %.2f, attempt %d", t.ID, price, t.Attempt)
		return nil
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(Prices, label)},
	})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	for range n {
		select {
		case <-seen:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), sys.Stop())
		}
	}
	return sys.Stop() // settles the outcomes
}
