package wakebell_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/reminder"
)

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
