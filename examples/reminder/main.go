// Reminder reminds customers of unpaid invoices. One mail is sent, one is retried while
// the mail server is busy, one cannot be sent and becomes a dead letter, and one is
// cancelled because the customer has paid.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Reminder is the body of the timers.
type Reminder struct {
	Address string `json:"address"`
	Cents   int    `json:"cents"`
}

// Reminders is the topic. The id of a reminder is the id of its invoice, so that an
// invoice has at most one, and it can be cancelled by the id of the invoice.
var Reminders = wakebell.NewTopic[Reminder]("reminders")

var errNoAddress = errors.New("not an address")

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
	p := post{out: out, answered: make(chan string)}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Reminders, p.remind, wakebell.MaxConcurrent(1), wakebell.MaxAttempts(5)),
	}})
	if err != nil {
		return err
	}
	client := sys.Client()
	if err := schedule(ctx, client); err != nil {
		return err
	}
	presence, err := Reminders.Cancel(ctx, client, "inv-4")
	if err != nil {
		return err
	}
	out.Printf("inv-4: paid, its reminder was %v", presence)
	if err := sys.Start(ctx); err != nil {
		return err
	}
	err = p.wait(ctx, 3)
	if err := errors.Join(err, sys.Stop()); err != nil {
		return err
	}
	return showDead(ctx, client, out)
}

// schedule stores all reminders in one round trip.
func schedule(ctx context.Context, c *wakebell.Client) error {
	_, err := c.Schedule(ctx,
		Reminders.Draft(Reminder{"ada@example.org", 1999}, wakebell.ID("inv-1"), wakebell.In(100*time.Millisecond)),
		Reminders.Draft(Reminder{"busy@example.org", 500}, wakebell.ID("inv-2"), wakebell.In(200*time.Millisecond)),
		Reminders.Draft(Reminder{"nowhere", 700}, wakebell.ID("inv-3"), wakebell.In(300*time.Millisecond)),
		Reminders.Draft(Reminder{"eve@example.org", 900}, wakebell.ID("inv-4"), wakebell.In(72*time.Hour)),
	)
	return err
}

// post sends mail, or returns an error.
type post struct {
	out      *log.Logger
	answered chan string // ids of settled reminders
}

func (p post) remind(ctx context.Context, t wakebell.Timer[Reminder]) error {
	switch address := t.Body.Address; {
	case !strings.Contains(address, "@"):
		p.out.Printf("%s: %q will never work", t.ID, address)
		p.answer(ctx, t.ID)
		return wakebell.Reject(fmt.Errorf("%w: %q", errNoAddress, address))
	case strings.HasPrefix(address, "busy") && t.Attempt == 1:
		p.out.Printf("%s: the server is busy", t.ID)
		return fmt.Errorf("server is busy: %w", wakebell.RetryIn(500*time.Millisecond))
	default:
		p.out.Printf("%s: remind %s of %d cents, attempt %d", t.ID, address, t.Body.Cents, t.Attempt)
		p.answer(ctx, t.ID)
		return nil
	}
}

func (p post) answer(ctx context.Context, id string) {
	select {
	case p.answered <- id:
	case <-ctx.Done():
	}
}

// wait returns when n reminders are settled.
func (p post) wait(ctx context.Context, n int) error {
	for range n {
		select {
		case <-p.answered:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// showDead lists the dead letters.
func showDead(ctx context.Context, c *wakebell.Client, out *log.Logger) error {
	for letter, err := range c.DeadLetters(ctx, Reminders.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		if err != nil {
			return err
		}
		out.Printf("%s: dead letter, %s", letter.ID, letter.Reason)
	}
	return nil
}
