package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The topic is paused on this node while half of its deliveries fail.
func ExampleBreaker() {
	failed := make(chan bool, 10)
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, func(context.Context, wakebell.Timer[Invoice]) error {
		failed <- true
		return errors.New("the bank does not answer")
	}, wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5, Deliveries: 1, OpenFor: time.Hour}))}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-failed
		for sys.Counters()[Invoices.Name()].BreakerOpened == 0 {
			<-time.After(time.Millisecond)
		}
		fmt.Println(sys.Health(context.Background()).Topics[0].Breaker)
	})
	// Output: open
}

// While both topics have timers that are due, nine of ten that start are urgent.
func ExampleWeight() {
	urgent, bulk := wakebell.NewTopic[string]("mail.urgent"), wakebell.NewTopic[string]("mail.bulk")
	sent := make(chan string)
	send := func(_ context.Context, t wakebell.Timer[string]) error {
		sent <- t.Body
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(urgent, send, wakebell.MaxConcurrent(20), wakebell.Weight("mail", 9)),
		wakebell.Handle(bulk, send, wakebell.MaxConcurrent(20), wakebell.Weight("mail", 1)),
	}}, func(sys *wakebell.System) {
		if _, err := urgent.Schedule(context.Background(), sys.Client(), "your code is 42"); err != nil {
			panic(err)
		}
		fmt.Println(<-sent)
	})
	// Output: your code is 42
}

// Between 2 and 100 reports are rendered at once.
func ExampleAdaptiveConcurrency() {
	handled := make(chan bool, 10)
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, func(context.Context, wakebell.Timer[Invoice]) error {
		handled <- true
		return nil
	}, wakebell.MaxConcurrent(100), wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{Min: 2}))}}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-42")
		<-handled
		fmt.Println(sys.Health(context.Background()).Topics[0].Concurrency)
	})
	// Output: 2
}
