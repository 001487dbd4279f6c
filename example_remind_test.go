package wakebell_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// open asks a cart to open.
type open struct{}

func ExampleRemindMe() {
	done := make(chan struct{})
	cart := actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case open:
			err := wakebell.RemindMe(c, "close", wakebell.In(10*time.Millisecond), wrapperspb.String("buy or go"))
			if err != nil {
				log.Fatal(err)
			}
		case *messages.ReminderFailed: // Redis was down for 10 s, say
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
	run(wakebell.Config{Reminders: &wakebell.RemindersConfig{As: "shop-1"}}, func(sys *wakebell.System) {
		root := sys.ActorSystem().Root
		pid, err := root.SpawnNamed(cart, "cart-17") // by its name it is found after a restart
		if err != nil {
			log.Fatal(err)
		}
		root.Send(pid, open{})
		<-done
	})
	// Output: close buy or go
}

func ExampleRemindEvery() {
	done := make(chan struct{})
	sheep := actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case open:
			when := recurring.Rule{Every: 10 * time.Millisecond, Overlap: recurring.OverlapSkip}
			if err := wakebell.RemindEvery(c, "count", when, wrapperspb.String("sheep")); err != nil {
				log.Fatal(err)
			}
		case *messages.Reminder:
			c.Respond(m.Ack())
			if m.GetRun() == 1 {
				fmt.Println("one sheep")
				if err := wakebell.ForgetReminder(c, "count"); err != nil {
					log.Fatal(err)
				}
			}
		case *messages.ReminderForgotten:
			close(done)
		}
	})
	run(wakebell.Config{
		Scheduler: &recurring.SchedulerConfig{}, // fires them, here or at another node
		Reminders: &wakebell.RemindersConfig{As: "shop-1", Handler: []wakebell.HandlerOption{wakebell.MaxConcurrent(1)}},
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
	run(wakebell.Config{Reminders: &wakebell.RemindersConfig{As: "shop-1"}}, func(sys *wakebell.System) {
		// Outside of actors, or for others, calls wait for Redis.
		ctx, reminders := context.Background(), sys.Reminders()
		cart := wakebell.ToActor(sys.ActorSystem().NewLocalPID("cart-17"))
		if _, err := reminders.Set(ctx, cart, "close", wakebell.In(time.Hour), wrapperspb.String("x")); err != nil {
			log.Fatal(err)
		}
		err := reminders.SetEvery(ctx, cart, "count", recurring.Rule{Cron: "0 9 * * *"}, wrapperspb.String("x"))
		if err != nil {
			log.Fatal(err)
		}
		for state, err := range reminders.List(ctx, cart) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s: %s %s\n", state.To, state.Name, cmp.Or(state.Rule, "once"))
		}
		state, err := reminders.Get(ctx, cart, "close")
		fmt.Println(state.State, err)
		fmt.Println(reminders.Forget(ctx, cart, "close"))
	})
	// Output:
	// cart-17: close once
	// cart-17: count cron 0 9 * * *
	// pending <nil>
	// true <nil>
}

// grains is a Cluster; with protoactor's it asks that.
type grains struct{ reminded chan string }

func (g grains) Request(_ context.Context, kind, identity string, message proto.Message) (any, error) {
	m := message.(*messages.Reminder)
	g.reminded <- kind + " " + identity + ": " + m.GetName()
	return m.Ack(), nil
}

func ExampleCluster() {
	g := grains{make(chan string, 1)}
	run(wakebell.Config{Reminders: &wakebell.RemindersConfig{As: "shop-1", Cluster: g}}, func(sys *wakebell.System) {
		to := wakebell.ToIdentity("cart", "17")
		_, err := sys.Reminders().Set(context.Background(), to, "close", wakebell.In(0), wrapperspb.String("x"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(<-g.reminded)
	})
	// Output: cart 17: close
}

func ExampleReminders_PID() {
	run(wakebell.Config{Reminders: &wakebell.RemindersConfig{As: "shop-1"}}, func(sys *wakebell.System) {
		// To whom actors of other processes send SetReminder and ForgetReminder.
		fmt.Println(sys.Reminders().PID().GetId())
	})
	// Output: wakebell/reminders
}
