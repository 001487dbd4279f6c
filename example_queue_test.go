package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
)

// Welcome is a message of the examples.
type Welcome struct{ User string }

// Welcomes is the queue of the examples: each user is welcomed once a day.
var Welcomes = wakebell.NewQueue[Welcome]("welcomes",
	wakebell.DeduplicateBy(func(w Welcome) string { return w.User }),
	wakebell.Window(24*time.Hour),
	wakebell.PendingCap(10_000, wakebell.FullWaits),
	wakebell.FreeKeyOnFailure())

func ExampleNewQueue() {
	// As a Python service calls its keys that was set up with key_separator="/".
	q := wakebell.NewQueue[string]("mail", wakebell.KeySeparator("/"), wakebell.DeadLetterKey("mail/dead"))
	fmt.Println(q.Name(), q.Keys().Separator, q.Under("eu-").Name())
	// Output: mail / eu-mail
}

func ExampleQueue_Publish() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		for range 2 {
			fresh, err := Welcomes.Publish(ctx, c.Queues(), Welcome{"ann"})
			check(err)
			fmt.Println("fresh:", fresh)
		}
		fresh, err := Welcomes.Publish(ctx, c.Queues(), Welcome{"ann"}, wakebell.Key("ann, again"))
		check(err)
		fmt.Println("with a key of its own:", fresh)
	})
	// Output:
	// fresh: true
	// fresh: false
	// with a key of its own: true
}

func ExampleQueue_PublishAll() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		published, err := Welcomes.PublishAll(ctx, c.Queues(), Welcome{"ann"}, Welcome{"bob"}, Welcome{"ann"})
		check(err)
		for _, p := range published {
			fmt.Println(len(p.ID), p.Fresh)
		}
	})
	// Output:
	// 32 true
	// 32 true
	// 32 false
}

func ExampleQueues_Publish() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		drafts := []wakebell.Publication{wakebell.NewQueue[string]("mail").Draft("hello")}
		for range 3 { // as one does after an error: it is published once
			published, err := c.Queues().Publish(ctx, drafts...)
			check(err)
			fmt.Println(published[0].Fresh)
		}
		st, err := c.Queues().Stats(ctx, wakebell.QueueName{Name: "mail"})
		check(err)
		fmt.Println(st.Pending, "waits")
	})
	// Output:
	// true
	// true
	// true
	// 1 waits
}

func ExampleHandleQueue() {
	done := make(chan struct{})
	greet := func(_ context.Context, m wakebell.Message[Welcome]) error {
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

// As redis-message-queue does: an error ends a message, whose payload is kept.
func ExampleErrorsAreFinal() {
	mail := wakebell.NewQueue[string]("mail")
	failed := make(chan struct{})
	send := func(context.Context, wakebell.Message[string]) error {
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
		check(sys.Remove("mail")) // what was decided is settled
		st, err := sys.Client().Queues().Stats(ctx, mail.Keys())
		check(err)
		fmt.Println(st.Failed, "failed,", st.Pending+st.Processing, "left")
	})
	// Output: 1 failed, 0 left
}

// AtMostOnce is for what is worse done twice than not at all.
func ExampleAtMostOnce() {
	alarms := wakebell.NewQueue[string]("alarms")
	got := make(chan string)
	ring := func(_ context.Context, m wakebell.Message[string]) error {
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

func ExampleQueues_Messages() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := Welcomes.PublishAll(ctx, c.Queues(), Welcome{"ann"}, Welcome{"bob"})
		check(err)
		const running = false // those that wait
		for m, err := range c.Queues().Messages(ctx, Welcomes.Keys(), running) {
			check(err)
			fmt.Println(string(m.Payload), m.Deliveries)
		}
		n, err := c.Queues().Purge(ctx, Welcomes.Keys(), true) // with those that are held
		check(err)
		fmt.Println("purged", n)
		kept, err := c.Queues().PurgeKept(ctx, Welcomes.Keys())
		check(err)
		left, err := wakebell.DrainQueue(ctx, c.Queues(), Welcomes.Keys())
		check(err)
		fmt.Println(kept, left.Pending)
	})
	// Output:
	// {"User":"ann"} 0
	// {"User":"bob"} 0
	// purged 2
	// 0 0
}

func ExampleRedriveQueue() {
	ctx := context.Background()
	died := make(chan struct{})
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(Welcomes, func(context.Context, wakebell.Message[Welcome]) error {
			died <- struct{}{}
			return wakebell.Reject(errors.New("no such user"))
		}, wakebell.MaxConcurrent(1)),
	}}, func(sys *wakebell.System) {
		c := sys.Client()
		for _, user := range []string{"ann", "bob", "cat"} {
			_, err := Welcomes.Publish(ctx, c.Queues(), Welcome{user})
			check(err)
			<-died
		}
		check(sys.Remove(Welcomes.Name()))
		var letters []wakebell.QueueLetter
		for l, err := range c.Queues().DeadLetters(ctx, Welcomes.Keys(), 0) {
			check(err)
			fmt.Println(string(l.Payload), l.Reason)
			letters = append(letters, l)
		}
		bob, err := c.Queues().DeadLetter(ctx, Welcomes.Keys(), letters[1].Entry)
		check(err)
		outcome, _, err := c.Queues().RedriveDeadLetter(ctx, Welcomes.Keys(), bob, Welcomes.RedriveOptions())
		check(err)
		fmt.Println("bob redriven:", outcome == wakebell.LetterRedriven)
		n, err := c.Queues().DeleteDeadLetters(ctx, Welcomes.Keys(), letters[0])
		check(err)
		fmt.Println("deleted", n)
		redriven, err := wakebell.RedriveQueue(ctx, c.Queues(), Welcomes.Keys(), wakebell.QueueRedrive{}) // without keys
		check(err)
		fmt.Println("redriven", redriven)
	})
	// Output:
	// {"User":"ann"} no such user
	// {"User":"bob"} no such user
	// {"User":"cat"} no such user
	// bob redriven: true
	// deleted 1
	// redriven 1
}
