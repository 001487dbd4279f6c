// Remind sets a reminder for an actor: a cart that closes when it is idle for a
// while. The process ends before that and starts again. The reminder is delivered
// until the cart acknowledges it.
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
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
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
	// The first run of the process: something is put into the cart, and its reminder
	// is stored.
	kept := make(chan struct{})
	err := live(ctx, rdb, &cart{out: out, kept: kept}, func(root *actor.RootContext, cart *actor.PID) {
		root.Send(cart, put{"a book"})
		<-kept
	})
	if err != nil {
		return err
	}
	out.Print("the process begins anew")
	closed := make(chan struct{})
	return live(ctx, rdb, &cart{out: out, closed: closed}, func(*actor.RootContext, *actor.PID) { <-closed })
}

// live runs a System and the cart in it until do returns.
func live(ctx context.Context, rdb *redis.Client, c *cart, do func(*actor.RootContext, *actor.PID)) error {
	system := actor.NewActorSystem()
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(system, conn, wakebell.Config{
		Reminders: &reminder.Config{Node: "shop-1", RetryInitial: 100 * time.Millisecond, RetryLimit: time.Minute},
	})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	// An actor with reminders needs a fixed name, so that they find it later.
	pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return c }), "cart-17")
	if err == nil {
		do(system.Root, pid)
	}
	return errors.Join(err, sys.Stop())
}

// put is something for the cart.
type put struct{ what string }

type cart struct {
	out          *log.Logger
	kept, closed chan struct{} // end the runs of the example
}

// Receive never waits for Redis: the outcome of Set arrives as a message.
func (s *cart) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case put:
		s.out.Printf("%s is in the cart", m.what)
		// It replaces the reminder with the same name.
		if err := reminder.Set(c, "close", reminder.In(5*time.Second), wrapperspb.String(m.what)); err != nil {
			s.out.Print(err) // what is wrong with the arguments
		}
	case *messages.SetReminderResponse:
		s.out.Printf("it will be reminded to %s", m.GetName())
		close(s.kept)
	case *messages.ReminderFailed:
		s.out.Print(wakebell.AnswerError(m.GetError()))
	case *messages.Reminder:
		s.remind(c, m)
	}
}

func (s *cart) remind(c actor.Context, m *messages.Reminder) {
	what, err := m.Read()
	book, ok := what.(*wrapperspb.StringValue)
	switch {
	case !ok:
		c.Respond(m.Reject(err)) // a retry cannot help
	case m.GetAttempt() == 1:
		s.out.Print("the shelf is busy")
		c.Respond(m.Nack(errors.New("the shelf is busy"))) // retried later
	default:
		s.out.Printf("%s goes back to the shelf", book.GetValue())
		c.Respond(m.Ack())
		close(s.closed)
	}
}
