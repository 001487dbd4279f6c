package wakebell_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
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
		Handlers: []wakebell.Handler{wakebell.ForwardQueue(Welcomes, wakebell.ToEach(clerk))},
	}, func(sys *wakebell.System) {
		_, err := Welcomes.Publish(context.Background(), sys.Client().Queues(), Welcome{"ann"})
		check(err)
		fmt.Println(<-read)
	})
	// Output: ann
}

func ExampleRecurringSchedules() {
	// It takes Schedules of this process or those of a Client of package remote.
	nightly := func(ctx context.Context, schedules wakebell.RecurringSchedules) error {
		return schedules.Put(ctx, Invoices.Recurring("nightly", wakebell.Recurrence{Cron: "0 3 * * *"}, Invoice{}))
	}
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(nightly(ctx, c.Schedules()))
		state, err := c.Schedules().Get(ctx, "nightly")
		check(err)
		fmt.Println(state.Rule)
	})
	// Output: cron 0 3 * * *
}

func ExampleRecurringMessage() {
	run(wakebell.Config{}, func(sys *wakebell.System) {
		ask := func(request messages.Request) *actor.Future {
			return sys.ActorSystem().Root.RequestFuture(sys.Gateway(), request, 15*time.Second)
		}
		m, err := wakebell.RecurringMessage(Invoices.Recurring("nightly", wakebell.Recurrence{Cron: "0 3 * * *"}, Invoice{}))
		check(err)
		put := &messages.PutRecurringRequest{Schedules: []*messages.Recurring{m}}
		_, err = wakebell.Answered[*messages.PutRecurringResponse](ask(put).Result())
		check(err)
		answer, err := wakebell.Answered[*messages.GetRecurringResponse](ask(&messages.GetRecurringRequest{Name: "nightly"}).Result())
		check(err)
		fmt.Println(wakebell.RecurringStateOf(answer.GetSchedule()).Rule)
	})
	// Output: cron 0 3 * * *
}

// printer is an actors.Taker that acknowledges what it gets.
type printer chan string

func (p printer) Take(h *poller.ForwardedLease) {
	h.Answer(h.Ack())
	p <- h.GetId()
}

func (p printer) Extended(*poller.ForwardedLease) {}

func (p printer) Over(*messages.LeaseEnded) {}

func ExampleToTaker() {
	taken := make(printer, 1)
	run(wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Forward(Invoices, wakebell.ToTaker(taken))},
	}, func(sys *wakebell.System) {
		_, err := Invoices.Schedule(context.Background(), sys.Client(), Invoice{"42", 995}, wakebell.ID("inv-42"))
		check(err)
		fmt.Println(<-taken)
	})
	// Output: inv-42
}
