package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

func ExampleHandle() {
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		defer close(done)
		fmt.Println(t.ID, "of", t.Topic, "at attempt", t.Attempt)
		fmt.Println("not early:", t.Lateness() >= 0)
		return nil // or Reject(err), RetryIn(d), any other error
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, charge,
			wakebell.MaxConcurrent(20),                         // handlers at the same time on this node
			wakebell.LeaseTTL(time.Minute),                     // when the timers of a crashed node are retried
			wakebell.RetryBackoff(10*time.Second, 2*time.Hour), // after an error; doubles with each failure
			wakebell.PollingInterval(100*time.Millisecond),     // without hints,
			wakebell.MaxPollingInterval(500*time.Millisecond)), // as from Python clients
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
	})
	// Output:
	// inv-42 of invoices at attempt 1
	// not early: true
}

func ExampleMeta() {
	// Meta has the fields that timers of all types share.
	describe := func(m wakebell.Meta) string {
		tenant, _ := m.Headers.Get("x-tenant")
		return fmt.Sprintf("%s of %s for %s", m.ID, m.Topic, tenant)
	}
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		defer close(done)
		fmt.Println(describe(t.Meta))
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42", wakebell.Header("x-tenant", "acme"))
		<-done
	})
	// Output: inv-42 of invoices for acme
}

func ExampleMeta_Settle() {
	done := make(chan struct{})
	charge := func(ctx context.Context, t wakebell.Timer[Invoice]) error {
		defer close(done)
		fmt.Println("charged:", t.Settle(ctx, nil)) // settled: not delivered again
		return errors.New("the receipt cannot be printed")
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
		stats, err := sys.Client().Stats(context.Background(), "invoices")
		check(err)
		fmt.Println("left:", stats.Total)
	})
	// Output:
	// charged: <nil>
	// left: 0
}

func ExampleMeta_Extend() {
	done := make(chan struct{})
	charge := func(ctx context.Context, t wakebell.Timer[Invoice]) error {
		defer close(done)
		if err := t.Extend(ctx); err != nil { // the lease is lost
			return err
		}
		fmt.Println("the lease is extended")
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
	})
	// Output: the lease is extended
}

func ExampleMaxAttempts() {
	died := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		if fmt.Println("attempt", t.Attempt); t.Attempt == 2 {
			defer close(died)
		}
		return errors.New("bank is closed")
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, charge, wakebell.MaxAttempts(2), wakebell.RetryBackoff(time.Millisecond, time.Second)),
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-died
		check(sys.Stop())
		fmt.Println("dead:", sys.Counters()["invoices"].DeadLettered)
	})
	// Output:
	// attempt 1
	// attempt 2
	// dead: 1
}

func ExampleMaxLeaseAge() {
	done := make(chan struct{})
	hang := func(ctx context.Context, _ wakebell.Timer[Invoice]) error {
		defer close(done)
		<-ctx.Done()
		fmt.Println(errors.Is(context.Cause(ctx), wakebell.ErrLeaseTooOld))
		return ctx.Err()
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, hang, wakebell.MaxLeaseAge(10*time.Millisecond), wakebell.RetryBackoff(time.Hour, time.Hour)),
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
	})
	// Output: true
}

func ExampleDiscardRejected() {
	done := make(chan struct{})
	reject := func(context.Context, wakebell.Timer[Invoice]) error {
		defer close(done)
		return wakebell.Reject(errors.New("no such account"))
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, reject, wakebell.DiscardRejected()),
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
		check(sys.Stop())
		stats, err := sys.Client().Stats(context.Background(), "invoices")
		check(err)
		fmt.Println("timers:", stats.Total, "dead letters:", stats.Dead)
	})
	// Output: timers: 0 dead letters: 0
}

func ExamplePanicBackoff() {
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		if t.Attempt == 1 {
			panic("no connection") // counts as a failure; the handler's actor is restarted
		}
		defer close(done)
		fmt.Println("attempt", t.Attempt, "failures", t.Failures)
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, charge, wakebell.PanicBackoff(), wakebell.RetryBackoff(time.Second, time.Minute)),
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
	})
	// Output: attempt 2 failures 1
}

func ExampleRetryOnLeaseExpiry() {
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		if t.Attempt == 1 {
			return errors.New("bank is closed") // the timer stays leased until LeaseTTL is over
		}
		defer close(done)
		fmt.Println("attempt", t.Attempt, "failures", t.Failures)
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, charge, wakebell.RetryOnLeaseExpiry(), wakebell.LeaseTTL(3*time.Second)),
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
	})
	// Output: attempt 2 failures 0
}

func ExampleDeliveryWindow() {
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		defer close(done)
		fmt.Println(t.ID, "is soon enough:", t.Lateness() < time.Second)
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, charge, wakebell.DeliveryWindow(50*time.Millisecond)), // throughput counts
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
	})
	// Output: inv-42 is soon enough: true
}

// tagged returns a middleware that prints its name.
func tagged(name string) wakebell.Middleware {
	return func(next wakebell.HandlerFunc) wakebell.HandlerFunc {
		return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
			fmt.Println(name)
			return next(ctx, t)
		}
	}
}

func ExampleWith() {
	done := make(chan struct{})
	charge := func(context.Context, wakebell.Timer[Invoice]) error { close(done); return nil }
	run(wakebell.Config{
		Middleware: []wakebell.Middleware{tagged("for all topics")},
		Handlers: []wakebell.Handler{
			wakebell.Handle(Invoices, charge, wakebell.With(tagged("for this one"), tagged("innermost"))),
		},
	}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-done
	})
	// Output:
	// for all topics
	// for this one
	// innermost
}

func ExampleGroup() {
	done := make(chan struct{})
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		defer close(done)
		fmt.Println("charge", t.ID, "of", t.Topic)
		return nil
	}
	run(wakebell.Config{Handlers: wakebell.Group("billing:", []wakebell.Handler{
		wakebell.Handle(Invoices, charge),
	}, tagged("around the group"))}, func(sys *wakebell.System) {
		_, err := Invoices.Under("billing:").Schedule(context.Background(), sys.Client(), Invoice{}, wakebell.ID("inv-42"))
		check(err)
		<-done
	})
	// Output:
	// around the group
	// charge inv-42 of billing:invoices
}

func ExampleToActor() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	system := actorSystem()
	done, sum := make(chan struct{}), 0
	account := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		lease, ok := c.Message().(*messages.Lease)
		if !ok {
			return
		}
		invoice, err := Invoices.Read(lease)
		if err != nil {
			c.Respond(lease.Reject(err))
			return
		}
		sum += invoice.Cents // one message at a time: no lock
		c.Respond(lease.Ack())
		if sum == 2*995 {
			close(done)
		}
	}))
	sys, err := wakebell.New(system, quietly(server.Client()), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Forward(Invoices, wakebell.ToActor(account))},
	})
	check(err)
	check(sys.Start(context.Background()))
	bill(sys.Client(), "inv-42")
	bill(sys.Client(), "inv-43")
	<-done
	check(sys.Stop())
	fmt.Println(sum)
	// Output: 1990
}

func ExampleSnooze() {
	err := fmt.Errorf("the shop is closed: %w", wakebell.Snooze(time.Hour)) // no failure
	d, snoozed := wakebell.SnoozeDelay(err)
	fmt.Println(d, snoozed)
	// Output:
	// 1h0m0s true
}

func ExampleRelease() {
	err := wakebell.Release(errors.New("the printer is not connected"))
	fmt.Println(err, wakebell.IsReleased(err))
	// Output:
	// released: the printer is not connected true
}

// Welcome is a message of the examples.
type Welcome struct{ User string }

// Welcomes is the queue of the examples: each user is welcomed once a day.
var Welcomes = queue.New[Welcome]("welcomes",
	queue.DeduplicateBy(func(w Welcome) string { return w.User }),
	queue.DeduplicationWindow(24*time.Hour),
	queue.PendingCap(10_000, queue.FullWaits),
	queue.FreeKeyOnFailure())

func ExampleHandleQueue() {
	done := make(chan struct{})
	greet := func(_ context.Context, m wakebell.Timer[Welcome]) error {
		defer close(done)
		fmt.Println("welcome,", m.Body.User)
		return nil // or Reject(err), RetryIn(d), any other error
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(Welcomes, greet,
			wakebell.LeaseTTL(time.Minute), // the visibility timeout
			wakebell.MaxAttempts(10),       // deliveries
			wakebell.KeepCompleted(1000)),  // payloads
	}}, func(sys *wakebell.System) {
		_, err := Welcomes.Publish(context.Background(), sys.Client().Queues(), Welcome{"ann"})
		check(err)
		<-done
	})
	// Output: welcome, ann
}

// A message is not retried after its handler fails, as in redis-message-queue. Its
// payload is stored.
func ExampleErrorsAreFinal() {
	mail := queue.New[string]("mail")
	failed := make(chan struct{})
	send := func(context.Context, wakebell.Timer[string]) error {
		defer close(failed)
		return errors.New("no such address")
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(mail, send, wakebell.ErrorsAreFinal(), wakebell.KeepFailed(100)),
	}}, func(sys *wakebell.System) {
		ctx := context.Background()
		_, err := mail.Publish(ctx, sys.Client().Queues(), "hello")
		check(err)
		<-failed
		check(sys.Remove("mail")) // waits for the settlement
		st, err := sys.Client().Queues().Stats(ctx, mail.Keys())
		check(err)
		fmt.Println(st.Failed, "failed,", st.Pending+st.Processing, "left")
	})
	// Output: 1 failed, 0 left
}

// Use AtMostOnce if handling a message twice is worse than losing it.
func ExampleAtMostOnce() {
	alarms := queue.New[string]("alarms")
	got := make(chan string)
	ring := func(_ context.Context, m wakebell.Timer[string]) error {
		got <- m.Body
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(alarms, ring, wakebell.AtMostOnce()),
	}}, func(sys *wakebell.System) {
		_, err := alarms.Publish(context.Background(), sys.Client().Queues(), "fire")
		check(err)
		fmt.Println(<-got)
	})
	// Output: fire
}
