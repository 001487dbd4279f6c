// Actor handles timers with actors: one account actor that owns the balance, and a
// printer actor for each receipt that is printed at the same time.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/messages"
)

// Entries are booked by the account, in cents; Receipts are printed.
var (
	Entries  = wakebell.NewTopic[int]("entries")
	Receipts = wakebell.NewTopic[string]("receipts")
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
	system := actor.NewActorSystem()
	book := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &account{out: out} }))
	defer system.Root.Poison(book)
	printers := actor.PropsFromProducer(func() actor.Actor { return &printer{out: out, printed: done} })

	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(system, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Forward(Entries, wakebell.ToActor(book)),
		wakebell.Forward(Receipts, wakebell.ToEachActor(printers), wakebell.MaxConcurrent(3)),
	}})
	if err != nil {
		return err
	}
	_, err = sys.Client().Schedule(ctx,
		Entries.Draft(-700, wakebell.ID("rent"), wakebell.In(100*time.Millisecond)),
		Entries.Draft(1000, wakebell.ID("wages"), wakebell.In(3500*time.Millisecond)),
		Receipts.Draft("thank you", wakebell.ID("receipt"), wakebell.In(11*time.Second)),
	)
	if err != nil {
		return err
	}
	return sys.Run(ctx)
}

// account is one actor. It receives one message at a time, so it needs no lock.
type account struct {
	out     *log.Logger
	balance int
}

var errNoMoney = errors.New("not enough money")

// Receive books an entry, or asks for a retry.
func (l *account) Receive(c actor.Context) {
	lease, ok := c.Message().(*messages.Lease)
	if !ok {
		return
	}
	cents, err := Entries.Read(lease)
	switch {
	case err != nil:
		c.Respond(lease.Reject(err))
	case l.balance+cents < 0:
		l.out.Printf("%s: %v, attempt %d", lease.GetId(), errNoMoney, lease.GetAttempt())
		c.Respond(lease.NackIn(7*time.Second, errNoMoney))
	default:
		l.balance += cents
		l.out.Printf("%s: %+d, balance %d", lease.GetId(), cents, l.balance)
		c.Respond(lease.Ack())
	}
}

// printer is an actor that handles one lease at a time.
type printer struct {
	out     *log.Logger
	printed func() // ends the example
}

// Receive starts a print that takes a while, and answers when it is done. An actor may
// answer later, as long as it answers or extends the lease within LeaseTTL.
func (p *printer) Receive(c actor.Context) {
	lease, ok := c.Message().(*messages.Lease)
	if !ok {
		return
	}
	root, sender := c.ActorSystem().Root, c.Sender()
	time.AfterFunc(50*time.Millisecond, func() {
		p.out.Printf("%s is printed: %s", lease.GetId(), lease.GetBody())
		root.Send(sender, lease.Ack())
		p.printed() // a real node keeps running
	})
}
