// Debounce indexes a document when its author has stopped typing: every change
// reschedules the timer, and the last version is indexed.
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

// Changes is the topic. The id of a timer is the id of its document.
var Changes = wakebell.NewTopic[string]("changes")

const (
	quiet  = 300 * time.Millisecond // without a change before it is indexed
	latest = 5 * time.Second        // after the first change at the latest
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
	index := func(_ context.Context, t wakebell.Timer[string]) error {
		out.Printf("index %s: %q", t.ID, t.Body)
		done() // a real node keeps running
		return nil
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(Changes, index)},
	})
	if err != nil {
		return err
	}
	for _, text := range []string{"W", "Wa", "Wake", "Wakebell"} {
		if err := changed(ctx, sys.Client(), out, "doc-1", text); err != nil {
			return err
		}
	}
	return sys.Run(ctx)
}

// changed is called for every change of a document, in any process.
func changed(ctx context.Context, c *wakebell.Client, out *log.Logger, id, text string) error {
	scheduled, err := c.Schedule(ctx,
		Changes.Draft(text, wakebell.ID(id), wakebell.Debounce(quiet, latest)))
	if err != nil {
		return err
	}
	out.Printf("%q: timer %s", text, scheduled[0].Outcome)
	return nil
}
