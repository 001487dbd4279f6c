package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The topic is paused on this node while half of its deliveries fail.
func ExampleBreaker() {
	failed := make(chan bool, 10)
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, func(context.Context, wakebell.Timer[Invoice]) error {
		failed <- true
		return errors.New("the bank does not answer")
	}, wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5, Deliveries: 1, OpenFor: time.Hour}))}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-failed
		for sys.Counters()[Invoices.Name()].BreakerOpened == 0 {
			<-time.After(time.Millisecond)
		}
		fmt.Println(sys.Health(context.Background()).Topics[0].Breaker)
	})
	// Output: open
}

// While both topics have timers that are due, nine of ten that start are urgent.
func ExampleWeight() {
	urgent, bulk := wakebell.NewTopic[string]("mail.urgent"), wakebell.NewTopic[string]("mail.bulk")
	sent := make(chan string)
	send := func(_ context.Context, t wakebell.Timer[string]) error {
		sent <- t.Body
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(urgent, send, wakebell.MaxConcurrent(20), wakebell.Weight("mail", 9)),
		wakebell.Handle(bulk, send, wakebell.MaxConcurrent(20), wakebell.Weight("mail", 1)),
	}}, func(sys *wakebell.System) {
		if _, err := urgent.Schedule(context.Background(), sys.Client(), "your code is 42"); err != nil {
			panic(err)
		}
		fmt.Println(<-sent)
	})
	// Output: your code is 42
}

// Between 2 and 100 reports are rendered at once.
func ExampleAdaptiveConcurrency() {
	handled := make(chan bool, 10)
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, func(context.Context, wakebell.Timer[Invoice]) error {
		handled <- true
		return nil
	}, wakebell.MaxConcurrent(100), wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{Min: 2}))}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-handled
		fmt.Println(sys.Health(context.Background()).Topics[0].Concurrency)
	})
	// Output: 2
}

func ExampleRateLimit() {
	done := make(chan struct{})
	var sent []string
	send := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		if sent = append(sent, t.ID); len(sent) == 3 {
			close(done)
		}
		return nil
	}
	began := time.Now()
	run(wakebell.Config{Handlers: []wakebell.Handler{
		// At most 10 in a second over all nodes, each 100 ms after the last.
		wakebell.Handle(Invoices, send, wakebell.RateLimit(10, time.Second, 1), wakebell.MaxConcurrent(1)),
	}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-1")
		bill(sys.Client(), "inv-2")
		bill(sys.Client(), "inv-3")
		<-done
		fmt.Println(sent, "too soon:", time.Since(began) < 190*time.Millisecond)
	})
	// Output: [inv-1 inv-2 inv-3] too soon: false
}

func ExampleMaxInFlight() {
	var running, most atomic.Int32
	var done sync.WaitGroup
	done.Add(4)
	send := func(context.Context, wakebell.Timer[Invoice]) error {
		defer done.Done()
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		<-time.After(time.Millisecond)
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		// At most two over all nodes; MaxConcurrent is for each node.
		wakebell.Handle(Invoices, send, wakebell.MaxInFlight(2), wakebell.MaxConcurrent(10)),
	}}, func(sys *wakebell.System) {
		for _, id := range []string{"inv-1", "inv-2", "inv-3", "inv-4"} {
			bill(sys.Client(), id)
		}
		done.Wait()
		fmt.Println("more than two:", most.Load() > 2)
	})
	// Output: more than two: false
}

// Events of one account are handled one after the other, in the order in which they
// happened; those of different accounts at the same time.
func ExamplePerKey() {
	type booking struct {
		Account string
		Amount  int
	}
	bookings := wakebell.NewTopic[booking]("bookings")

	h := wakebell.Handle(bookings, func(ctx context.Context, t wakebell.Timer[booking]) error {
		fmt.Println(t.Body.Account, t.Body.Amount)
		return nil
	}, wakebell.PerKey(1), wakebell.MaxConcurrent(50))

	schedule := func(ctx context.Context, client *wakebell.Client, b booking) error {
		_, err := bookings.Schedule(ctx, client, b, wakebell.Key(b.Account), wakebell.In(time.Minute))
		return err
	}
	_, _ = h, schedule
}

// Each tenant gets at most 100 calls a minute, and 10 at once after a pause. A tenant with a
// long backlog does not hold up the others.
func ExampleRateLimitByKey() {
	type call struct {
		Tenant, URL string
	}
	calls := wakebell.NewTopic[call]("calls")

	h := wakebell.Handle(calls, func(ctx context.Context, t wakebell.Timer[call]) error {
		fmt.Println("calling", t.Body.URL)
		return nil
	}, wakebell.RateLimitByKey(100, time.Minute, 10), wakebell.MaxConcurrent(50))

	schedule := func(ctx context.Context, client *wakebell.Client, c call) error {
		_, err := calls.Schedule(ctx, client, c, wakebell.Key(c.Tenant))
		return err
	}
	_, _ = h, schedule
}

// A webhook that fails is retried later, and the next one of its receiver is not held
// up meanwhile.
func ExampleSkipFailed() {
	hooks := wakebell.NewTopic[string]("webhooks")
	h := wakebell.Handle(hooks, func(context.Context, wakebell.Timer[string]) error { return nil },
		wakebell.PerKey(4), wakebell.SkipFailed())
	_ = h
}

// The bookings of a busy account are taken by a node in key runs of up to 50, one after the other.
func ExampleKeyRun() {
	bookings := wakebell.NewTopic[string]("bookings")
	h := wakebell.Handle(bookings, func(context.Context, wakebell.Timer[string]) error { return nil },
		wakebell.PerKey(1), wakebell.KeyRun(50))
	_ = h
}

// Customers take turns, so one with many due reports does not hold up the others; those whose keys
// begin with "gold:" have three times as many in a turn.
func ExampleFairKeys() {
	reports := wakebell.NewTopic[string]("reports")
	h := wakebell.Handle(reports, func(context.Context, wakebell.Timer[string]) error { return nil },
		wakebell.PerKey(10), wakebell.FairKeys(1), wakebell.KeyWeights(map[string]int{"gold": 3}))
	_ = h
}

// The key of a timer is any text or bytes, such as the id of an account.
func ExampleKey() {
	mails := wakebell.NewTopic[string]("mails")
	draft := mails.Draft("welcome", wakebell.Key("account-42"))
	_ = draft
}

// The handler writes all readings that are due with one statement. An error of the
// database fails all of them; a reading that it refuses has a verdict of its own.
func ExampleHandleBatch() {
	type reading struct{ Celsius float64 }
	readings := wakebell.NewTopic[reading]("readings")
	insert := func(_ context.Context, rows []float64) (refused []int, err error) {
		for i, celsius := range rows {
			if celsius < -273.15 {
				refused = append(refused, i)
			}
		}
		return refused, nil
	}
	done := make(chan struct{})
	store := func(ctx context.Context, timers []wakebell.Timer[reading]) error {
		defer close(done)
		var rows []float64
		for _, t := range timers {
			rows = append(rows, t.Body.Celsius)
		}
		refused, err := insert(ctx, rows)
		if err != nil {
			return err // all are retried
		}
		verdicts := wakebell.BatchError{}
		for _, i := range refused {
			verdicts[timers[i].ID] = wakebell.Reject(errors.New("below absolute zero"))
		}
		fmt.Println(len(timers), "readings;", verdicts.Error())
		return verdicts // the others are acknowledged
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleBatch(readings, store,
			wakebell.BatchSize(500),
			wakebell.BatchWait(50*time.Millisecond)), // for more readings
	}}, func(sys *wakebell.System) {
		_, err := sys.Client().Schedule(context.Background(),
			readings.Draft(reading{21}, wakebell.ID("a")),
			readings.Draft(reading{-300}, wakebell.ID("b")),
			readings.Draft(reading{19}, wakebell.ID("c")))
		check(err)
		<-done
	})
	// Output: 3 readings; 1 timers of the batch failed: "b": below absolute zero
}

// The middleware counts the verdicts of each batch, and refuses mails to those who have unsubscribed.
func ExampleBatchMiddleware() {
	mails := wakebell.NewTopic[string]("mails")
	done := make(chan struct{})
	count := func(next wakebell.BatchFunc) wakebell.BatchFunc {
		return func(ctx context.Context, timers []wakebell.Timer[[]byte]) wakebell.BatchError {
			defer close(done)
			verdicts := next(ctx, timers)
			fmt.Println(len(timers), "timers,", len(verdicts), "failed")
			return verdicts
		}
	}
	subscribed := func(next wakebell.BatchFunc) wakebell.BatchFunc {
		return func(ctx context.Context, timers []wakebell.Timer[[]byte]) wakebell.BatchError {
			var wanted, refused []wakebell.Timer[[]byte]
			for _, t := range timers {
				if _, listed := t.Headers.Get("unsubscribed"); listed {
					refused = append(refused, t)
				} else {
					wanted = append(wanted, t)
				}
			}
			verdicts := next(ctx, wanted)
			for _, t := range refused {
				verdicts[t.ID] = wakebell.Reject(errors.New("unsubscribed"))
			}
			return verdicts
		}
	}
	send := func(_ context.Context, timers []wakebell.Timer[string]) error {
		fmt.Println("sending", len(timers))
		return nil
	}
	run(wakebell.Config{
		BatchMiddleware: []wakebell.BatchMiddleware{count},
		Handlers:        []wakebell.Handler{wakebell.HandleBatch(mails, send, wakebell.WithBatch(subscribed))},
	}, func(sys *wakebell.System) {
		_, err := sys.Client().Schedule(context.Background(),
			mails.Draft("hello", wakebell.ID("a")),
			mails.Draft("hello", wakebell.ID("b"), wakebell.Header("unsubscribed", "yes")))
		check(err)
		<-done
	})
	// Output:
	// sending 1
	// 2 timers, 1 failed
}

// A timer of a batch has a context of its own, which ends when the timer is cancelled.
func ExampleMeta_Context() {
	letters := wakebell.NewTopic[string]("letters")
	sent := make(chan int)
	send := func(_ context.Context, timers []wakebell.Timer[string]) error {
		count := 0
		for _, t := range timers {
			if t.Context().Err() == nil {
				count++
			}
		}
		sent <- count
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.HandleBatch(letters, send)}}, func(sys *wakebell.System) {
		_, err := sys.Client().Schedule(context.Background(), letters.Draft("one"), letters.Draft("two"))
		check(err)
		fmt.Println(<-sent, "sent")
	})
	// Output: 2 sent
}

// An actor handles batches of leases. It answers some leases by themselves, and the
// others together.
func ExampleBatchSize() {
	rates := wakebell.NewTopic[string]("rates")
	got := make(chan int, 1)
	props := actor.PropsFromFunc(func(c actor.Context) {
		batch, ok := c.Message().(*messages.LeaseBatch)
		if !ok {
			return
		}
		for _, lease := range batch.GetLeases() {
			if currency, err := rates.Read(lease); err != nil || currency == "" {
				c.Respond(lease.Reject(errors.New("no currency")))
			}
		}
		c.Respond(batch.Ack())
		got <- len(batch.GetLeases())
	})
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Forward(rates, wakebell.ToEachActor(props), wakebell.BatchSize(10)),
	}}, func(sys *wakebell.System) {
		_, err := sys.Client().Schedule(context.Background(), rates.Draft("EUR"), rates.Draft("USD"))
		check(err)
		fmt.Println(<-got, "leases")
	})
	// Output: 2 leases
}

func ExampleHandleQueueBatch() {
	mail := queue.New[string]("mail")
	done := make(chan struct{})
	send := func(_ context.Context, batch []wakebell.Timer[string]) error {
		defer close(done)
		for _, m := range batch {
			fmt.Println(m.Body)
		}
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueueBatch(mail, send, wakebell.BatchSize(50)),
	}}, func(sys *wakebell.System) {
		_, err := mail.Publish(context.Background(), sys.Client().Queues(), "hello")
		check(err)
		<-done
	})
	// Output: hello
}

// An offer that could not be sent in time is not sent at all.
func ExampleExpiry() {
	offers := wakebell.NewTopic[string]("offers")
	handler := wakebell.Handle(offers, func(context.Context, wakebell.Timer[string]) error { return nil },
		wakebell.Expiry(wakebelltype.Expiry{After: time.Hour, DeadLetter: true}))
	short := offers.Draft("today only", wakebell.ExpireAfter(time.Minute)) // its own limit wins
	_, _ = handler, short
}
