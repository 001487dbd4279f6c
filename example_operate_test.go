package wakebell_test

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
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

func ExampleClient_Prefix() {
	connect(func(_ context.Context, c *wakebell.Client) {
		fmt.Printf("%q\n", c.Prefix()+Invoices.Name()) // the name in its keys
	})
	// Output: "invoices"
}

func ExampleClient_Audit() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := c.Pause(wakebell.WithCaller(ctx, "ada"), "invoices", "", "the database moves")
		check(err)
		_, err = c.CancelAll(wakebell.WithCaller(ctx, "bob"), "invoices")
		check(err)
		for e, err := range c.Audit(ctx, wakebelltype.AuditFilter{Operation: "topic"}, wakebelltype.Page{}) {
			check(err)
			fmt.Println(e.By, e.Operation, e.Name, e.Count, e.Detail)
		}
	})
	// Output:
	// ada topic.pause invoices 1 reason: the database moves
	// bob topic.cancel_all invoices 0
}
