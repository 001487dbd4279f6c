package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

// order is a message to the actor of the shop.
type order struct{ number string }

func ExampleSystem_Gateway() {
	done := make(chan struct{})
	// An actor that schedules by message does not wait: it receives the answer
	// as a message.
	shop := actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case order:
			request, err := wakebell.ScheduleMessage(Invoices.Draft(Invoice{m.number, 995},
				wakebell.ID("inv-"+m.number), wakebell.In(72*time.Hour)))
			if err != nil {
				log.Fatal(err)
			}
			sys, _ := wakebell.SystemOf(c.ActorSystem())
			c.Request(sys.Gateway(), request)
		case *messages.ScheduleResponse:
			fmt.Println(m.GetId(), "is", m.GetOutcome())
			close(done)
		case *messages.Error:
			log.Fatal(wakebell.AnswerError(m))
		}
	})
	// A System without handlers delivers no timers, and its gateway schedules.
	system := actorSystem()
	runIn(system, connection.Config{}, wakebell.Config{}, func(sys *wakebell.System) {
		root := sys.ActorSystem().Root
		root.Send(root.Spawn(shop), order{"42"})
		<-done
	})
	// Output: inv-42 is OUTCOME_CREATED
}

func ExampleSystemOf() {
	done := make(chan struct{})
	// An actor that schedules by call waits for Redis, and handles no other
	// message during that time.
	shop := actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(order); ok {
			sys, _ := wakebell.SystemOf(c.ActorSystem())
			id, err := Invoices.Schedule(context.Background(), sys.Client(), Invoice{m.number, 995},
				wakebell.ID("inv-"+m.number), wakebell.In(72*time.Hour))
			fmt.Println(id, err)
			close(done)
		}
	})
	system := actorSystem()
	runIn(system, connection.Config{}, wakebell.Config{}, func(*wakebell.System) {
		system.Root.Send(system.Root.Spawn(shop), order{"42"})
		<-done
	})
	// Output: inv-42 <nil>
}

func ExampleSystemNamed() {
	system := actorSystem()
	runIn(system, connection.Config{}, wakebell.Config{Name: "billing"}, func(sys *wakebell.System) {
		found, ok := wakebell.SystemNamed(system, "billing")
		fmt.Println(found == sys, ok)
		_, ok = wakebell.SystemOf(system) // the one with the default name
		fmt.Println(ok)
	})
	// Output:
	// true true
	// false
}

func ExampleAnswered() {
	system := actorSystem()
	runIn(system, connection.Config{}, wakebell.Config{}, func(sys *wakebell.System) {
		// Outside of actors, wait for the answer with a future.
		ask := func(request messages.Request) *actor.Future {
			return system.Root.RequestFuture(sys.Gateway(), request, 15*time.Second)
		}
		cancelled, err := wakebell.Answered[*messages.CancelResponse](
			ask(&messages.CancelRequest{Topic: Invoices.Name(), Ids: []string{"inv-42"}}).Result())
		fmt.Println(cancelled.GetFound(), err)
		_, err = wakebell.Answered[*messages.GetTimerResponse](
			ask(&messages.GetTimerRequest{Topic: Invoices.Name(), Id: "inv-42"}).Result())
		fmt.Println(errors.Is(err, wakebell.ErrNotFound))
	})
	// Output:
	// [PRESENCE_ABSENT] <nil>
	// true
}

// customs is an actor that acquires a gate.
type customs struct {
	gates *actor.PID
	done  chan struct{}
}

func (a *customs) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		c.Request(a.gates, &messages.AcquireTurnRequest{Gate: "border"})
	case *messages.Turn: // the turn is released when the actor stops
		fmt.Println("through", m.GetGate())
		c.Request(a.gates, &messages.ReleaseTurnRequest{Gate: "border", Fence: m.GetFence()})
	case *messages.ReleaseTurnResponse:
		close(a.done)
	case *messages.TurnLost, *messages.TurnRefused:
		fmt.Println("not now:", m)
	}
}

func ExampleSystem_Gates() {
	system := actorSystem()
	runIn(system, connection.Config{}, wakebell.Config{Gates: gate.Config{LeaseTTL: time.Minute}}, func(sys *wakebell.System) {
		a := &customs{gates: sys.Gates().PID(), done: make(chan struct{})}
		root := system.Root
		pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
		<-a.done
		check(root.StopFuture(pid).Wait())
	})
	// Output: through border
}

func ExampleSystem_Reminders() {
	run(wakebell.Config{Reminders: &reminder.Config{Node: "shop-1"}}, func(sys *wakebell.System) {
		cart := reminder.Actor(sys.ActorSystem().NewLocalPID("cart-17"))
		_, err := sys.Reminders().Set(context.Background(), cart, "close", reminder.In(time.Hour), wrapperspb.String("x"))
		check(err)
		state, err := sys.Reminders().Get(context.Background(), cart, "close")
		check(err)
		fmt.Println(state.Name, state.Status)
	})
	// Output: close pending
}

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

var (
	Mails    = wakebell.NewTopic[string]("mails")
	Mailings = wakebell.NewTopic[string]("mailings")
)

func ExampleBatch() {
	done := make(chan struct{})
	send := func(_ context.Context, t wakebell.Timer[string]) (int, error) {
		if t.Body == "unknown" {
			return 0, wakebell.Reject(errors.New("no such address"))
		}
		return len(t.Body), nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleResult(Mails, send),
		wakebell.Handle(Mailings, func(ctx context.Context, t wakebell.Timer[string]) error {
			defer close(done)
			for part, err := range t.Parts(ctx) {
				if err != nil {
					return err
				}
				fmt.Println(part.ID, part.End, part.Result != nil)
			}
			return nil
		}),
	}}, func(sys *wakebell.System) {
		mails := wakebell.Batch(Mails.Draft("ann", wakebell.ID("1")), Mails.Draft("unknown", wakebell.ID("2")))
		_, err := sys.Client().Schedule(context.Background(),
			mails.Then(Mailings.Draft("spring", wakebell.ID("m-1"), wakebell.In(24*time.Hour)))...) // at the latest then
		check(err)
		<-done
	})
	// Output:
	// 1 done true
	// 2 dead false
}

func ExampleChain() {
	done := make(chan struct{})
	step := func(ctx context.Context, t wakebell.Timer[string]) error {
		for before, err := range t.Parts(ctx) {
			if errors.Is(err, wakebell.ErrNotFound) { // the first one has none before it
				break
			}
			check(err)
			fmt.Println(before.ID, before.End)
		}
		if fmt.Println("then", t.ID); t.ID == "report" {
			close(done)
		}
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Mails, step)}}, func(sys *wakebell.System) {
		_, err := sys.Client().Schedule(context.Background(), wakebell.Chain(
			Mails.Draft("", wakebell.ID("load")),
			Mails.Draft("", wakebell.ID("sum"), wakebell.In(time.Hour)),
			Mails.Draft("", wakebell.ID("report"), wakebell.In(2*time.Hour)),
		)...)
		check(err)
		<-done
	})
	// Output:
	// then load
	// load done
	// then sum
	// sum done
	// then report
}

func ExampleAfter() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(time.Hour))
		bill(c, "inv-43", wakebell.In(2*time.Hour))
		_, err := Mailings.Schedule(ctx, c, "all are paid", wakebell.ID("m-1"), wakebell.In(72*time.Hour), wakebell.After(
			wakebelltype.Part{Topic: "invoices", ID: "inv-42"}, wakebelltype.Part{Topic: "invoices", ID: "inv-43"}))
		check(err)
		join, err := c.Join(ctx, "mailings", "m-1")
		check(err)
		fmt.Println(join.Parts, "parts,", join.Ended(), "ended, complete:", join.Complete())
		n, err := c.CancelJoin(ctx, "mailings", "m-1")
		fmt.Println(n, "cancelled", err)
	})
	// Output:
	// 2 parts, 0 ended, complete: false
	// 2 cancelled <nil>
}

func ExampleAfterOpen() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := Mailings.Schedule(ctx, c, "", wakebell.ID("m-1"), wakebell.In(24*time.Hour), wakebell.AfterOpen())
		check(err)
		// Later, in any process:
		_, err = Mails.Schedule(ctx, c, "ann", wakebell.ID("1"), wakebell.PartOf("mailings", "m-1"))
		check(err)
		bill(c, "inv-42")
		var joins wakebell.Joiner = c // or a remote.Client
		check(joins.AddParts(ctx, "mailings", "m-1", wakebelltype.Part{Topic: "invoices", ID: "inv-42"}))
		check(c.CloseJoin(ctx, "mailings", "m-1"))
		for part, err := range c.Parts(ctx, "mailings", "m-1", wakebelltype.Page{}) {
			check(err)
			fmt.Println(part.Topic, part.ID, part.End == "")
		}
		err = c.AddParts(ctx, "mailings", "m-1", wakebelltype.Part{Topic: "mails", ID: "2"})
		fmt.Println(err)
	})
	// Output:
	// mails 1 true
	// invoices inv-42 true
	// invalid argument: parts: the join of "m-1" on "mailings" is closed
}
