package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleNew() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	_, err := wakebell.New(actorSystem(), server.Client(), wakebell.Config{
		DrainTimeout: -time.Second, // no drain
		Handlers:     []wakebell.Handler{wakebell.Handle(Invoices, pay, wakebell.MaxConcurrent(0))},
	})
	fmt.Println(errors.Is(err, wakebell.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// Handlers[0] (topic "invoices"): invalid argument: MaxConcurrent: 0 is not within 1 and 10000
}

func pay(context.Context, wakebell.Timer[Invoice]) error { return nil }

func ExampleSystem_Run() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	sys, err := wakebell.New(actorSystem(), server.Client(), wakebell.Config{Logger: quiet})
	check(err)
	// In a program: signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	fmt.Println(sys.Run(ctx)) // starts, waits until ctx ends, drains
	// Output: <nil>
}

func ExampleSystem_Start() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	sys, err := wakebell.New(actorSystem(), server.Client(), wakebell.Config{Logger: quiet})
	check(err)
	ctx := context.Background()
	fmt.Println(sys.Start(ctx))
	fmt.Println(sys.Start(ctx))
	fmt.Println(sys.Stop(), sys.Stop()) // a second Stop returns the same
	// Output:
	// <nil>
	// system was started before
	// <nil> <nil>
}

func ExampleSystem_Add() {
	receipts := wakebell.NewTopic[string]("receipts")
	printed := make(chan struct{})
	run(wakebell.Config{}, func(sys *wakebell.System) {
		ctx := context.Background()
		check(sys.Add(ctx, wakebell.Handle(receipts, func(_ context.Context, t wakebell.Timer[string]) error {
			defer close(printed)
			fmt.Println("print", t.Body)
			return nil
		})))
		_, err := receipts.Schedule(ctx, sys.Client(), "thank you")
		check(err)
		<-printed
		check(sys.Remove(receipts.Name())) // drained; its timers stay in Redis
		fmt.Println(sys.Remove(receipts.Name()))
	})
	// Output:
	// print thank you
	// no such topic: "receipts"
}

func ExampleSystem_Remove() {
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, pay)}}, func(sys *wakebell.System) {
		check(sys.Remove("invoices"))
		bill(sys.Client(), "inv-42") // for other nodes
		fmt.Println(errors.Is(sys.PauseLocal("invoices"), wakebell.ErrNoTopic))
	})
	// Output: true
}

func ExampleSystem_RetuneLocal() {
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, pay)}}, func(sys *wakebell.System) {
		fmt.Println(sys.RetuneLocal("invoices", wakebell.MaxConcurrent(50), wakebell.LeaseTTL(time.Minute)))
		fmt.Println(errors.Is(sys.RetuneLocal("invoices", wakebell.MaxConcurrent(0)), wakebell.ErrInvalid))
	})
	// Output:
	// <nil>
	// true
}

func ExampleSystem_PauseLocal() {
	paid := make(chan string)
	handle := func(_ context.Context, t wakebell.Timer[Invoice]) error { paid <- t.ID; return nil }
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, handle)}}, func(sys *wakebell.System) {
		check(sys.PauseLocal("invoices")) // only on this node; Client.Pause applies to all nodes
		bill(sys.Client(), "inv-42")
		check(sys.ResumeLocal("invoices"))
		fmt.Println(<-paid)
	})
	// Output: inv-42
}

func ExampleSystem_Counters() {
	paid := make(chan struct{})
	handle := func(context.Context, wakebell.Timer[Invoice]) error { close(paid); return nil }
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, handle)}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-paid
		check(sys.Stop())
		counters := sys.Counters()["invoices"]
		fmt.Println("delivered:", counters.Delivered, "acked:", counters.Acked)
	})
	// Output: delivered: 1 acked: 1
}

func ExampleClient_Pause() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		order, err := c.Pause(ctx, "invoices", "ada", "the bank is down") // on all nodes
		check(err)
		fmt.Println(order.Paused, order.PausedBy, order.Reason)
		order, err = c.Resume(ctx, "invoices")
		check(err)
		fmt.Println(order.Paused)
	})
	// Output:
	// true ada the bank is down
	// false
}

func ExampleClient_Retune() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := c.Retune(ctx, "invoices", wakebelltype.Settings{MaxConcurrent: 2}) // on all nodes
		check(err)
		order, err := c.Control(ctx, "invoices")
		check(err)
		fmt.Println(order.Settings.MaxConcurrent)
	})
	// Output: 2
}
