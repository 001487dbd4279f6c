package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

type Invoice struct {
	Number string
	Cents  int
}

var Invoices = wakebell.NewTopic[Invoice]("invoices")

// run starts a System with a new Redis, calls use and stops the System.
func run(cfg wakebell.Config, use func(*wakebell.System)) {
	runIn(actorSystem(), connection.Config{}, cfg, use)
}

// runWith is run with a configuration of the Connection.
func runWith(conn connection.Config, cfg wakebell.Config, use func(*wakebell.System)) {
	runIn(actorSystem(), conn, cfg, use)
}

// runIn is runWith in the caller's ActorSystem.
func runIn(system *actor.ActorSystem, on connection.Config, cfg wakebell.Config, use func(*wakebell.System)) {
	server := embedded.Start()
	defer server.Close()
	on.Logger = quiet
	conn, err := connection.New(server.Client(), on)
	if err != nil {
		log.Fatal(err)
	}
	sys, err := wakebell.New(system, conn, cfg)
	if err != nil {
		log.Fatal(err)
	}
	if err := sys.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	use(sys)
	if err := sys.Stop(); err != nil {
		log.Fatal(err)
	}
}

func Example() {
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		defer close(done)
		fmt.Println("charge", t.Body.Cents, "for", t.ID)
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, charge, wakebell.MaxConcurrent(20)),
	}}, func(sys *wakebell.System) {
		_, err := Invoices.Schedule(context.Background(), sys.Client(), Invoice{"42", 995},
			wakebell.ID("inv-42"), wakebell.In(10*time.Millisecond))
		if err != nil {
			log.Fatal(err)
		}
		<-done
	})
	// Output: charge 995 for inv-42
}

func ExampleRetryIn() {
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		if t.Attempt == 1 {
			fmt.Println("the bank is closed")
			return fmt.Errorf("bank is closed: %w", wakebell.RetryIn(10*time.Millisecond))
		}
		defer close(done)
		fmt.Println("charged at attempt", t.Attempt)
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)}}, func(sys *wakebell.System) {
		if _, err := Invoices.Schedule(context.Background(), sys.Client(), Invoice{"42", 995}); err != nil {
			log.Fatal(err)
		}
		<-done
	})
	// Output:
	// the bank is closed
	// charged at attempt 2
}

func ExampleReject() {
	done := make(chan struct{})
	charge := func(context.Context, wakebell.Timer[Invoice]) error {
		defer close(done)
		return wakebell.Reject(errors.New("no such account"))
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)}}, func(sys *wakebell.System) {
		ctx, c := context.Background(), sys.Client()
		if _, err := Invoices.Schedule(ctx, c, Invoice{"42", 995}, wakebell.ID("inv-42")); err != nil {
			log.Fatal(err)
		}
		<-done
		if err := sys.Stop(); err != nil { // outcomes of handlers are settled
			log.Fatal(err)
		}
		for letter, err := range c.DeadLetters(ctx, Invoices.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(letter.ID, "is dead:", letter.Reason)
		}
	})
	// Output: inv-42 is dead: no such account
}

func ExampleMiddleware() {
	// timeout bounds the duration of a handler.
	timeout := func(d time.Duration) wakebell.Middleware {
		return func(next wakebell.HandlerFunc) wakebell.HandlerFunc {
			return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
				ctx, cancel := context.WithTimeout(ctx, d)
				defer cancel()
				return next(ctx, t)
			}
		}
	}
	done := make(chan struct{})
	slow := func(ctx context.Context, _ wakebell.Timer[Invoice]) error {
		defer close(done)
		<-ctx.Done()
		fmt.Println(ctx.Err())
		return wakebell.Reject(ctx.Err())
	}
	run(wakebell.Config{
		Middleware: []wakebell.Middleware{timeout(10 * time.Millisecond)},
		Handlers:   []wakebell.Handler{wakebell.Handle(Invoices, slow)},
	}, func(sys *wakebell.System) {
		if _, err := Invoices.Schedule(context.Background(), sys.Client(), Invoice{"42", 995}); err != nil {
			log.Fatal(err)
		}
		<-done
	})
	// Output: context deadline exceeded
}

func ExampleForward() {
	done := make(chan struct{})
	clerk := actor.PropsFromFunc(func(c actor.Context) {
		lease, ok := c.Message().(*messages.Lease)
		if !ok {
			return
		}
		defer close(done)
		invoice, err := Invoices.Read(lease)
		if err != nil {
			c.Respond(lease.Reject(err))
			return
		}
		fmt.Println("an actor charges", invoice.Cents)
		c.Respond(lease.Ack())
	})
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Forward(Invoices, wakebell.ToEachActor(clerk)),
	}}, func(sys *wakebell.System) {
		if _, err := Invoices.Schedule(context.Background(), sys.Client(), Invoice{"42", 995}); err != nil {
			log.Fatal(err)
		}
		<-done
	})
	// Output: an actor charges 995
}

func ExampleDebounce() {
	server := embedded.Start()
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	c, err := wakebell.NewClient(conn)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, cents := range []int{1, 2, 3} { // several changes result in one timer
		scheduled, err := c.Schedule(ctx, Invoices.Draft(Invoice{"42", cents},
			wakebell.ID("inv-42"), wakebell.Debounce(time.Minute, time.Hour)))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(scheduled[0].Outcome)
	}
	_, content, err := c.Get(ctx, Invoices.Name(), "inv-42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(content.Body))
	// Output:
	// created
	// moved
	// moved
	// {"Number":"42","Cents":3}
}

// quietly returns a Connection that logs nothing.
func quietly(rdb redis.UniversalClient) *connection.Connection {
	conn, err := connection.New(rdb, connection.Config{Logger: quiet})
	check(err)
	return conn
}

// connect calls use with a Client of a new Redis.
func connect(use func(context.Context, *wakebell.Client)) {
	server := embedded.Start()
	defer server.Close()
	rdb := server.Client()
	defer func() { check(rdb.Close()) }()
	c, err := wakebell.NewClient(quietly(rdb))
	check(err)
	use(context.Background(), c)
}

// withDeadLetters calls use after invoices of these numbers were dead-lettered, in
// this order.
func withDeadLetters(use func(context.Context, *wakebell.System), numbers ...string) {
	died := make(chan struct{})
	reject := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		died <- struct{}{}
		return wakebell.Reject(errors.New("no such account"))
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, reject, wakebell.MaxConcurrent(1)),
	}}, func(sys *wakebell.System) {
		ctx := context.Background()
		for _, number := range numbers {
			bill(sys.Client(), "inv-"+number)
			<-died
		}
		check(sys.Remove(Invoices.Name())) // waits for the settlements
		use(ctx, sys)
	})
}

// bill schedules an invoice of 995 cents, due at once unless opts change that.
func bill(c *wakebell.Client, id string, opts ...wakebell.ScheduleOption) {
	_, err := Invoices.Schedule(context.Background(), c, Invoice{"42", 995}, append(opts, wakebell.ID(id))...)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleForwardQueue() {
	read := make(chan string, 1)
	clerk := actor.PropsFromFunc(func(c actor.Context) {
		if lease, ok := c.Message().(*messages.Lease); ok {
			welcome, err := Welcomes.Read(lease)
			check(err)
			c.Respond(lease.Ack())
			read <- welcome.User
		}
	})
	run(wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.ForwardQueue(Welcomes, wakebell.ToEachActor(clerk))},
	}, func(sys *wakebell.System) {
		_, err := Welcomes.Publish(context.Background(), sys.Client().Queues(), Welcome{"ann"})
		check(err)
		fmt.Println(<-read)
	})
	// Output: ann
}

func ExampleClient_Schedules() {
	// The interface accepts the Schedules of a Client and of a remote.Client.
	nightly := func(ctx context.Context, schedules recurring.Operator) error {
		return schedules.Put(ctx, Invoices.Recurring("nightly", recurring.Rule{Cron: "0 3 * * *"}, Invoice{}))
	}
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(nightly(ctx, c.Schedules()))
		state, err := c.Schedules().Get(ctx, "nightly")
		check(err)
		fmt.Println(state.RuleText)
	})
	// Output: cron 0 3 * * *
}

// quiet discards the log of systems that an example makes fail on purpose.
var quiet = slog.New(slog.DiscardHandler)

// actorSystem returns an ActorSystem that logs nothing; a program logs with its own.
func actorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}
