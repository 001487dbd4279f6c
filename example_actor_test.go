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
	runIn(system, wakebell.Config{}, func(sys *wakebell.System) {
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
	runIn(system, wakebell.Config{}, func(*wakebell.System) {
		system.Root.Send(system.Root.Spawn(shop), order{"42"})
		<-done
	})
	// Output: inv-42 <nil>
}

func ExampleSystemNamed() {
	system := actorSystem()
	runIn(system, wakebell.Config{Name: "billing"}, func(sys *wakebell.System) {
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
	runIn(system, wakebell.Config{}, func(sys *wakebell.System) {
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
