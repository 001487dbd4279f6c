package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

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
