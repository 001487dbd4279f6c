package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/queue"
)

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
