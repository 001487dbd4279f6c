package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
)

func ExampleOperator() {
	// The interface accepts a Client and a remote.Client.
	maintain := func(ctx context.Context, of wakebell.Operator, topic string) error {
		_, err := of.Pause(ctx, topic, "ops", "the database moves")
		return err
	}
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(maintain(ctx, c, Invoices.Name()))
		ordered, err := c.Control(ctx, Invoices.Name())
		check(err)
		fmt.Println(ordered.Paused, ordered.Reason)
	})
	// Output: true the database moves
}

func ExampleErrorMessage() {
	failed := wakebell.ErrorMessage(fmt.Errorf("charge: %w", wakebell.ErrNotFound))
	fmt.Println(failed.GetCode())
	fmt.Println(errors.Is(wakebell.AnswerError(failed), wakebell.ErrNotFound))
	// Output:
	// CODE_NOT_FOUND
	// true
}

func ExampleContentMessage() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(time.Hour))
		_, content, err := c.Get(ctx, Invoices.Name(), "inv-42")
		check(err)
		m := wakebell.ContentMessage(content)
		fmt.Println(m.GetContentType(), string(m.GetBody()))
	})
	// Output: application/json {"Number":"42","Cents":995}
}

func ExampleStatsMessage() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(time.Hour))
		st, err := c.Stats(ctx, Invoices.Name())
		check(err)
		fmt.Println(wakebell.StatsMessage(st).GetPending())
	})
	// Output: 1
}

func ExampleClient_Prefix() {
	connect(func(_ context.Context, c *wakebell.Client) {
		fmt.Printf("%q\n", c.Prefix()+Invoices.Name()) // the name in its keys
	})
	// Output: "invoices"
}
