package wakebell_test

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleClient_DeadLetters() {
	withDeadLetters(func(ctx context.Context, sys *wakebell.System) {
		filter := wakebelltype.DeadFilter{Reason: "account"} // zero: all
		for letter, err := range sys.Client().DeadLetters(ctx, "invoices", filter, wakebelltype.Page{}) {
			check(err)
			fmt.Println(letter.ID, "died of:", letter.Reason)
		}
	}, "42", "43")
	// Output:
	// inv-42 died of: no such account
	// inv-43 died of: no such account
}

func ExampleClient_DeadLetter() {
	withDeadLetters(func(ctx context.Context, sys *wakebell.System) {
		c := sys.Client()
		for listed, err := range c.DeadLetters(ctx, "invoices", wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
			check(err)
			letter, err := c.DeadLetter(ctx, "invoices", listed.Entry)
			check(err)
			fmt.Println(letter.ID, letter.Attempts, string(letter.Content.Body))
		}
	}, "42")
	// Output: inv-42 1 {"Number":"42","Cents":995}
}

func ExampleClient_LastDead() {
	withDeadLetters(func(ctx context.Context, sys *wakebell.System) {
		letters, err := sys.Client().LastDead(ctx, "invoices", 2)
		check(err)
		for _, letter := range letters {
			fmt.Println(letter.ID)
		}
	}, "42", "43", "44")
	// Output:
	// inv-43
	// inv-44
}

func ExampleClient_Redrive() {
	withDeadLetters(func(ctx context.Context, sys *wakebell.System) {
		c := sys.Client()
		bill(c, "inv-43") // the id is pending again
		became := map[string]wakebelltype.RedriveOutcome{}
		done, err := c.Redrive(ctx, "invoices", wakebelltype.RedriveOptions{
			Filter: wakebelltype.DeadFilter{Reason: "no such account"},
			Rate:   1000, // a second
			Each:   func(l wakebelltype.RedrivenLetter) { became[l.ID] = l.Outcome },
		})
		check(err)
		fmt.Println(became)
		fmt.Println("redriven:", done.Redriven, "skipped:", done.SkippedLive)
	}, "42", "43")
	// Output:
	// map[inv-42:redriven inv-43:skipped live]
	// redriven: 1 skipped: 1
}

func ExampleClient_DeleteDead() {
	withDeadLetters(func(ctx context.Context, sys *wakebell.System) {
		fmt.Println(sys.Client().DeleteDead(ctx, "invoices", wakebelltype.DeadFilter{ReasonPrefix: "no such"}))
	}, "42", "43")
	// Output: 2 <nil>
}
