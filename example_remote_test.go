package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func ExampleTimerClient() {
	// The interface accepts a Client and a remote.Client.
	remind := func(ctx context.Context, timers wakebell.TimerClient, number string) error {
		_, err := Invoices.Schedule(ctx, timers, Invoice{number, 995}, wakebell.ID("inv-"+number), wakebell.In(72*time.Hour))
		return err
	}
	run(wakebell.Config{}, func(sys *wakebell.System) {
		if err := remind(context.Background(), sys.Client(), "42"); err != nil {
			log.Fatal(err)
		}
		info, _, err := sys.Client().Get(context.Background(), Invoices.Name(), "inv-42")
		fmt.Println(info.State, err)
	})
	// Output: pending <nil>
}

func ExampleSystem_Reserves() {
	run(wakebell.Config{}, func(sys *wakebell.System) {
		// The key of its pending messages, timers_timeline:mail::pending, is also the
		// timeline of the topic "mail::pending".
		fmt.Println(sys.Reserves("mail"), sys.Reserves("timers_timeline:mail"))
	})
	// Output: false true
}

func ExampleRetryDelay() {
	verdict := fmt.Errorf("the bank is closed: %w", wakebell.RetryIn(time.Hour))
	delay, retry := wakebell.RetryDelay(verdict)
	fmt.Println(delay, retry, wakebell.IsRejected(verdict))
	fmt.Println(wakebell.IsRejected(wakebell.Reject(errors.New("no such invoice"))))
	// Output:
	// 1h0m0s true false
	// true
}

func ExampleTarget_NotifyEnd() {
	ended := make(chan string, 1)
	has := make(chan struct{})
	clerk := actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *messages.Lease: // it is handled asynchronously
			close(has)
		case *messages.LeaseEnded:
			ended <- m.GetId() + ": " + m.GetReason().String()
		}
	})
	run(wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Forward(Invoices, wakebell.ToEachActor(clerk).NotifyEnd())},
	}, func(sys *wakebell.System) {
		ctx := context.Background()
		if _, err := Invoices.Schedule(ctx, sys.Client(), Invoice{"42", 995}, wakebell.ID("inv-42")); err != nil {
			log.Fatal(err)
		}
		<-has
		if _, err := Invoices.Cancel(ctx, sys.Client(), "inv-42"); err != nil {
			log.Fatal(err)
		}
		fmt.Println(<-ended)
	})
	// Output: inv-42: LEASE_END_CANCELLED
}
