package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleConfig_onDead() {
	heard := make(chan struct{})
	var received wakebell.DeadLetter
	run(wakebell.Config{
		Handlers: []wakebell.Handler{
			wakebell.Handle(Invoices, func(context.Context, wakebell.Timer[Invoice]) error {
				return wakebell.Reject(errors.New("card declined"))
			}),
		},
		OnDead: func(_ context.Context, d wakebell.DeadLetter) {
			fmt.Println(d.ID, "of", d.Topic, "died:", d.Reason)
			received = d
			close(heard)
		},
	}, func(sys *wakebell.System) {
		_, err := Invoices.Schedule(context.Background(), sys.Client(), Invoice{"42", 995}, wakebell.ID("inv-42"))
		if err != nil {
			log.Fatal(err)
		}
		<-heard
		letter, err := sys.Client().DeadLetter(context.Background(), received.Topic, received.Entry)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", letter.Content.Body)
	})
	// Output:
	// inv-42 of invoices died: card declined
	// {"Number":"42","Cents":995}
}

func ExampleClient_Tail() {
	charge := func(context.Context, wakebell.Timer[Invoice]) error { return nil }
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)}}, func(sys *wakebell.System) {
		ctx := context.Background()
		for e, err := range sys.Client().Tail(ctx, Invoices.Name()) {
			switch {
			case err != nil:
				log.Fatal(err)
			case e.Kind == wakebelltype.EventNode: // the node has joined: its events follow
				if _, err := Invoices.Schedule(ctx, sys.Client(), Invoice{"42", 995}, wakebell.ID("inv-42")); err != nil {
					log.Fatal(err)
				}
			case e.Kind == wakebelltype.EventAcked:
				fmt.Println(e.ID, "was handled at attempt", e.Attempt)
				return
			}
		}
	})
	// Output: inv-42 was handled at attempt 1
}
