package reminder_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

// open is a message that opens a cart.
type open struct{}

func ExampleSet() {
	done := make(chan struct{})
	cart := actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case open:
			err := reminder.Set(c, "close", reminder.In(10*time.Millisecond), wrapperspb.String("buy or go"))
			if err != nil {
				log.Fatal(err)
			}
		case *messages.ReminderFailed: // for example, Redis was down for 10 s
			log.Fatal(wakebell.AnswerError(m.GetError()))
		case *messages.Reminder:
			what, err := m.Read()
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(m.GetName(), what.(*wrapperspb.StringValue).GetValue())
			c.Respond(m.Ack())
			close(done)
		}
	})
	run(wakebell.Config{Reminders: &reminder.Config{Node: "shop-1"}}, func(sys *wakebell.System) {
		root := sys.ActorSystem().Root
		pid, err := root.SpawnNamed(cart, "cart-17") // the name finds it after a restart
		if err != nil {
			log.Fatal(err)
		}
		root.Send(pid, open{})
		<-done
	})
	// Output: close buy or go
}

func ExampleSetEvery() {
	done := make(chan struct{})
	sheep := actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case open:
			when := recurring.Rule{Every: 10 * time.Millisecond, Overlap: recurring.OverlapSkip}
			if err := reminder.SetEvery(c, "count", when, wrapperspb.String("sheep")); err != nil {
				log.Fatal(err)
			}
		case *messages.Reminder:
			c.Respond(m.Ack())
			if m.GetRun() == 1 {
				fmt.Println("one sheep")
				if err := reminder.Forget(c, "count"); err != nil {
					log.Fatal(err)
				}
			}
		case *messages.ForgetReminderResponse:
			close(done)
		}
	})
	run(wakebell.Config{
		Scheduler: &recurring.SchedulerConfig{}, // fires recurring reminders, here or on another node
		Reminders: &reminder.Config{Node: "shop-1", MaxConcurrent: 1},
	}, func(sys *wakebell.System) {
		root := sys.ActorSystem().Root
		pid, err := root.SpawnNamed(sheep, "sheep")
		if err != nil {
			log.Fatal(err)
		}
		root.Send(pid, open{})
		<-done
	})
	// Output: one sheep
}

func ExampleReminders() {
	run(wakebell.Config{Reminders: &reminder.Config{Node: "shop-1"}}, func(sys *wakebell.System) {
		// Outside of actors, or for other actors, calls wait for Redis.
		ctx, reminders := context.Background(), sys.Reminders()
		cart := reminder.Actor(sys.ActorSystem().NewLocalPID("cart-17"))
		if _, err := reminders.Set(ctx, cart, "close", reminder.In(time.Hour), wrapperspb.String("x")); err != nil {
			log.Fatal(err)
		}
		err := reminders.SetEvery(ctx, cart, "count", recurring.Rule{Cron: "0 9 * * *"}, wrapperspb.String("x"))
		if err != nil {
			log.Fatal(err)
		}
		for state, err := range reminders.List(ctx, cart, wakebelltype.Page{}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s: %s %s\n", state.To, state.Name, cmp.Or(state.RuleText, "once"))
		}
		state, err := reminders.Get(ctx, cart, "close")
		fmt.Println(state.Status, err)
		fmt.Println(reminders.Forget(ctx, cart, "close"))
	})
	// Output:
	// cart-17: close once
	// cart-17: count cron 0 9 * * *
	// pending <nil>
	// true <nil>
}

// grains stands in for a Cluster; with protoactor's, call Request of it.
type grains struct{ reminded chan string }

func (g grains) Request(_ context.Context, kind, identity string, message proto.Message) (any, error) {
	m := message.(*messages.Reminder)
	g.reminded <- kind + " " + identity + ": " + m.GetName()
	return m.Ack(), nil
}

func ExampleCluster() {
	g := grains{make(chan string, 1)}
	run(wakebell.Config{Reminders: &reminder.Config{Node: "shop-1", Cluster: g}}, func(sys *wakebell.System) {
		to := reminder.Identity("cart", "17")
		_, err := sys.Reminders().Set(context.Background(), to, "close", reminder.In(0), wrapperspb.String("x"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(<-g.reminded)
	})
	// Output: cart 17: close
}

func ExampleReminders_PID() {
	run(wakebell.Config{Reminders: &reminder.Config{Node: "shop-1"}}, func(sys *wakebell.System) {
		// Actors of other processes send SetReminderRequest and ForgetReminderRequest
		// to this PID.
		fmt.Println(sys.Reminders().PID().GetId())
	})
	// Output: wakebell/reminders
}

func ExampleRecipient() {
	to := reminder.Identity("cart", "17")
	fmt.Println(to.String(), to.Validate())
	fmt.Println(reminder.Identity("cart", "").Validate())
	when := reminder.At(time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC))
	_ = when                                         // an argument of reminder.Set
	cfg := &reminder.Config{AckTimeout: time.Second} // Node is missing
	fmt.Println(errors.Is(cfg.Validate(), wakebell.ErrInvalid))
	// Output:
	// cart 17 <nil>
	// the recipient's id is missing
	// true
}
