// Remote has two processes: a node that handles invoices, and a shop that schedules
// them over the network, without access to Redis.
//
//	go run ./examples/remote node
//	go run ./examples/remote shop ADDRESS
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/remote"
)

// Invoice is the body of the timers.
type Invoice struct {
	Number string
	Cents  int
}

// Invoices is the topic, shared by both.
var Invoices = wakebell.NewTopic[Invoice]("invoices")

// token is a shared secret.
var token = cmp.Or(os.Getenv("WAKEBELL_TOKEN"), "only-for-a-try-on-loopback")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := log.New(os.Stdout, "", 0)
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "node":
		rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
		defer done()
		err = node(ctx, rdb, out)
	case len(args) == 2 && args[0] == "shop":
		err = shop(ctx, args[1], out)
	default:
		log.Fatal("usage: remote node | remote shop ADDRESS")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func node(ctx context.Context, rdb *redis.Client, out *log.Logger) error {
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		out.Printf("charge %s: %d cents", t.Body.Number, t.Body.Cents)
		return nil
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)},
	})
	if err != nil {
		return err
	}
	server, err := remote.Serve(sys, remote.Config{ // on loopback; otherwise it needs an Address and TLS
		Tokens: map[string]string{token: "shop"},
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	out.Printf("listening on %s", server.Address())
	return sys.Run(ctx) // until ctx ends, then it drains
}

func shop(ctx context.Context, address string, out *log.Logger) error {
	timers, err := remote.Dial(ctx, address, nil, remote.DialConfig{Config: remote.Config{Token: token}})
	if err != nil {
		return err
	}
	defer timers.Close()
	return order(ctx, timers, out)
}

// order also accepts a client with access to Redis.
func order(ctx context.Context, timers wakebell.TimerClient, out *log.Logger) error {
	drafts := []wakebell.Draft{
		Invoices.Draft(Invoice{"42", 1999}, wakebell.ID("inv-42"), wakebell.In(4*time.Second)),
		Invoices.Draft(Invoice{"43", 500}, wakebell.ID("inv-43"), wakebell.In(time.Hour)),
	}
	once := remote.WithKey(ctx, "order-7") // a retry within a day does nothing
	if _, err := timers.Schedule(once, drafts...); err != nil {
		return err
	}
	found, err := timers.Cancel(ctx, Invoices.Name(), "inv-43")
	if err != nil {
		return err
	}
	info, _, err := timers.Get(ctx, Invoices.Name(), "inv-42")
	out.Printf("inv-43 was %s and is cancelled, inv-42 is %s", found[0], info.State)
	return err
}
