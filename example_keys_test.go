package wakebell_test

import (
	"context"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
)

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

// The key of a timer is any text or bytes, such as the id of an account.
func ExampleKey() {
	mails := wakebell.NewTopic[string]("mails")
	draft := mails.Draft("welcome", wakebell.Key("account-42"))
	_ = draft
}
