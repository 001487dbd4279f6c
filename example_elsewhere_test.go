package wakebell_test

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

func ExampleGatekeeper() {
	// It takes Gates of this process or those of a Client of package remote.
	deploy := func(ctx context.Context, gates wakebell.Gatekeeper) error {
		turn, err := gates.Acquire(ctx, "deploy")
		if err != nil {
			return err
		}
		return turn.Do(ctx, func(ctx context.Context, _ uint64) error {
			fmt.Println("alone")
			return ctx.Err()
		})
	}
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		check(deploy(ctx, gates))
	})
	// Output: alone
}

// alwaysOpen is a gate of a test: everybody has the turn.
type alwaysOpen struct{ wakebell.HeldTurn }

func (alwaysOpen) Fence() uint64                 { return 1 }
func (alwaysOpen) Context() context.Context      { return context.Background() }
func (alwaysOpen) Release(context.Context) error { return nil }

func ExampleNewTurn() {
	turn := wakebell.NewTurn(alwaysOpen{})
	check(turn.Do(context.Background(), func(_ context.Context, fence uint64) error {
		fmt.Println("fence", fence)
		return nil
	}))
	// Output: fence 1
}

func ExamplePublisher() {
	// It takes a Client of this process or one of package remote.
	welcome := func(ctx context.Context, p wakebell.Publisher, user string) error {
		_, err := Welcomes.Publish(ctx, p, Welcome{user})
		return err
	}
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(welcome(ctx, c, "ann"))
		st, err := c.QueueStats(ctx, Welcomes.Keys())
		check(err)
		fmt.Println(st.Pending)
	})
	// Output: 1
}

func ExamplePublishMessage() {
	draft := Welcomes.Draft(Welcome{"ann"})
	m, n, err := wakebell.PublishMessage(draft)
	check(err)
	fmt.Println(n, m.GetName(), string(m.GetMessages()[0].GetBody()), "waits for room:", draft.Waits())
	// Output: 1 welcomes {"User":"ann"} waits for room: true
}

func ExampleQueue_Read() {
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
		Handlers: []wakebell.Handler{wakebell.Forward(Welcomes, wakebell.ToEach(clerk))},
	}, func(sys *wakebell.System) {
		_, err := Welcomes.Publish(context.Background(), sys.Client(), Welcome{"ann"})
		check(err)
		fmt.Println(<-read)
	})
	// Output: ann
}

func ExampleClient_Schedules() {
	// It accepts the Schedules of a Client here or in package remote.
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

// printer is an actors.Taker that acknowledges what it gets.
type printer chan string

func (p printer) Take(h *poller.Handed) {
	h.Answer(h.Ack())
	p <- h.GetId()
}

func (p printer) Extended(*poller.Handed) {}

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
