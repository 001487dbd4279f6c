package wakebell_test

import (
	"context"
	"fmt"
	"time"

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

func ExampleClient_History() {
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		if t.Attempt == 1 {
			return fmt.Errorf("the bank is down: %w", wakebell.RetryIn(time.Millisecond))
		}
		return nil
	}
	record := wakebell.History(wakebelltype.HistoryFailures) // the default
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge, record)}}, func(sys *wakebell.System) {
		ctx, c := context.Background(), sys.Client()
		bill(c, "inv-42")
		ended := false
		for !ended {
			filter := wakebelltype.HistoryFilter{ID: "inv-42", Last: 1}
			for a, err := range c.History(ctx, "invoices", filter, wakebelltype.Page{}) {
				check(err)
				ended = a.Final()
			}
		}
		for a, err := range c.History(ctx, "invoices", wakebelltype.HistoryFilter{ID: "inv-42"}, wakebelltype.Page{}) {
			check(err)
			fmt.Println(a.Attempt, a.Outcome, a.Error)
		}
	})
	// Output:
	// 1 retried the bank is down: retry in 1ms
	// 2 acked
}

func ExampleClient_RecordChange() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		found, err := c.Cancel(ctx, "invoices", "inv-42", "inv-43")
		check(err)
		change := wakebelltype.Change{Operation: wakebelltype.AuditTopicCancel, Name: "invoices", Detail: "invoices of a customer who left"}
		for _, presence := range found {
			if presence != wakebelltype.PresenceAbsent {
				change.Count++
			}
		}
		check(c.RecordChange(ctx, change))
		for e, err := range c.Audit(ctx, wakebelltype.AuditFilter{Last: 1}, wakebelltype.Page{}) {
			check(err)
			fmt.Println(e.Operation, e.Name, e.Count, e.Detail)
		}
	})
	// Output: topic.cancel invoices 1 invoices of a customer who left
}

func ExampleClient_Throughput() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		t, err := c.Throughput(ctx, "invoices", 6*time.Hour)
		check(err)
		now := t.Points[len(t.Points)-1]
		fmt.Println(t.Step, len(t.Points), now.Scheduled, now.Handled)
	})
	// Output: 1m0s 360 1 0
}
