package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleNewClient() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	rdb := server.Client()
	conn, err := connection.New(rdb, connection.Config{
		Prefix:       "billing:",                              // as the prefix of a Python router
		Keys:         wakebelltype.Keys{Timeline: "invoices"}, // omitted keys have their defaults
		PayloadLimit: 1 << 16,
	})
	check(err)
	c, err := wakebell.NewClient(conn)
	check(err)
	fmt.Println(c.Connection() == conn)
	ctx := context.Background()
	bill(c, "inv-42")
	fmt.Println(rdb.Exists(ctx, "invoices:billing:invoices").Val())

	_, err = Invoices.Schedule(ctx, c, Invoice{Number: string(make([]byte, 1<<16))})
	fmt.Println(errors.Is(err, wakebell.ErrInvalid))
	check(rdb.Close())
	// Output:
	// true
	// 1
	// true
}

func ExampleTopic_Get() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(time.Hour))
		timer, err := Invoices.Get(ctx, c, "inv-42")
		check(err)
		fmt.Println(timer.State, timer.Body.Cents)

		_, err = Invoices.Get(ctx, c, "inv-43")
		fmt.Println(errors.Is(err, wakebell.ErrNotFound))
	})
	// Output:
	// pending 995
	// true
}

func ExampleStored() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := wakebell.NewTopic[string]("invoices").Schedule(ctx, c, "paid", wakebell.ID("inv-42"))
		check(err)
		timer, err := Invoices.Get(ctx, c, "inv-42")
		if errors.Is(err, wakebell.ErrUnreadable) { // not the body of an Invoice
			fmt.Printf("%s is %s: %s %q\n", timer.ID, timer.State, timer.Content.ContentType, timer.Content.Body)
		}
	})
	// Output: inv-42 is pending: text/plain "paid"
}

func ExampleClient_Get() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(time.Hour))
		info, content, err := c.Get(ctx, "invoices", "inv-42")
		check(err)
		fmt.Println(info.State, info.Attempts, string(content.Body))

		_, _, err = c.Get(ctx, "invoices", "inv-43")
		fmt.Println(errors.Is(err, wakebell.ErrNotFound))
	})
	// Output:
	// pending 0 {"Number":"42","Cents":995}
	// true
}

func ExampleInfo_IsDue() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(2*time.Hour))
		bill(c, "inv-43", wakebell.In(0))
		for info, err := range c.List(ctx, "invoices", wakebell.Filter{}, wakebelltype.Page{}) {
			check(err)
			fmt.Println(info.ID, info.State, info.IsDue(time.Now()))
		}
	})
	// Output:
	// inv-43 pending true
	// inv-42 pending false
}

func ExampleClient_List() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(2*time.Hour))
		bill(c, "inv-43", wakebell.In(1*time.Hour))
		bill(c, "inv-44", wakebell.In(72*time.Hour))
		soon := wakebell.Filter{DueBefore: time.Now().Add(24 * time.Hour)}
		for info, err := range c.List(ctx, "invoices", soon, wakebelltype.Page{}) {
			check(err)
			fmt.Println(info.ID, info.State)
		}
	})
	// Output:
	// inv-43 pending
	// inv-42 pending
}

func ExampleClient_Stats() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.At(time.Now().Add(-time.Hour))) // without a handler
		stats, err := c.Stats(ctx, "invoices")
		check(err)
		fmt.Println("due:", stats.Due, "running:", stats.Leased, "retrying:", stats.Retrying, "paused:", stats.Paused)
		if stats.Lag > time.Minute {
			fmt.Println("late by", stats.Lag.Round(time.Minute))
		}
	})
	// Output:
	// due: 1 running: 0 retrying: 0 paused: false
	// late by 1h0m0s
}

func ExampleClient_Overview() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		_, err := c.Pause(ctx, "invoices", "ada", "the bank is down")
		check(err)
		all, err := c.Overview(ctx, "invoices", "receipts")
		check(err)
		for _, topic := range all {
			fmt.Println(topic.Topic, "due:", topic.Stats.Due, "paused:", topic.Control.Paused)
		}
	})
	// Output:
	// invoices due: 1 paused: true
	// receipts due: 0 paused: false
}

func ExampleClient_Diagnose() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := c.Pause(ctx, "invoices", "ada", "the bank is down")
		check(err)
		findings, err := c.Diagnose(ctx, "invoices")
		check(err)
		for _, f := range findings {
			if f.Topic == "invoices" && f.Grade != wakebelltype.GradeGood && f.Grade != wakebelltype.GradeUnknown {
				fmt.Println(f.Grade, f.Check)
			}
		}
	})
	// Output: warn orders
}

func ExampleClient_Topics() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		for topic, err := range c.Topics(ctx, false, wakebelltype.Page{}) {
			check(err)
			fmt.Println(topic)
		}
	})
	// Output: invoices
}

func ExampleClient_RemoveTopic() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		r, err := c.RemoveTopic(ctx, "invoices")
		check(err)
		fmt.Println("used by:", r.Use)
		_, err = c.Cancel(ctx, "invoices", "inv-42")
		check(err)
		r, err = c.RemoveTopic(ctx, "invoices")
		check(err)
		fmt.Println("removed:", r.Existed && r.Use == "")
	})
	// Output:
	// used by: key "timers_timeline:invoices"
	// removed: true
}

func ExampleClient_Forget() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		check(c.Forget(ctx, "invoices")) // timers, dead letters and the name
		for topic, err := range c.Topics(ctx, false, wakebelltype.Page{}) {
			fmt.Println("still there:", topic, err)
		}
	})
	// Output:
}

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
