package wakebell_test

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
)

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
	runIn(system, wakebell.Config{Gates: gate.Config{LeaseTTL: time.Minute}}, func(sys *wakebell.System) {
		a := &customs{gates: sys.Gates().PID(), done: make(chan struct{})}
		root := system.Root
		pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
		<-a.done
		check(root.StopFuture(pid).Wait())
	})
	// Output: through border
}
