package wakebell_test

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

func ExampleForwardQueue() {
	read := make(chan string, 1)
	clerk := actor.PropsFromFunc(func(c actor.Context) {
		if lease, ok := c.Message().(*messages.Lease); ok {
			welcome, err := Welcomes.Read(lease)
			check(err)
			c.Respond(lease.Ack())
			read <- welcome.User
		}
	})
	run(wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.ForwardQueue(Welcomes, wakebell.ToEachActor(clerk))},
	}, func(sys *wakebell.System) {
		_, err := Welcomes.Publish(context.Background(), sys.Client().Queues(), Welcome{"ann"})
		check(err)
		fmt.Println(<-read)
	})
	// Output: ann
}

func ExampleClient_Schedules() {
	// The interface accepts the Schedules of a Client and of a remote.Client.
	nightly := func(ctx context.Context, schedules recurring.Operator) error {
		return schedules.Put(ctx, Invoices.Recurring("nightly", recurring.Rule{Cron: "0 3 * * *"}, Invoice{}))
	}
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(nightly(ctx, c.Schedules()))
		state, err := c.Schedules().Get(ctx, "nightly")
		check(err)
		fmt.Println(state.RuleText)
	})
	// Output: cron 0 3 * * *
}
