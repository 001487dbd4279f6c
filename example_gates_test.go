package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages"
)

// withGates runs fn with Gates, and closes them.
func withGates(cfg wakebell.GatesConfig, fn func(ctx context.Context, gates *wakebell.Gates)) {
	server := embedded.Start() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	gates, err := wakebell.NewGates(server.Client(), cfg)
	check(err)
	defer func() { check(gates.Close()) }()
	fn(context.Background(), gates)
}

func ExampleNewGates() {
	server := embedded.Start() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	gates, err := wakebell.NewGates(server.Client(), wakebell.GatesConfig{LeaseTTL: 5 * time.Second})
	check(err)
	turn, err := gates.Acquire(context.Background(), "deploy")
	check(err)
	fmt.Println("behind", turn.Gate())
	check(gates.Close()) // hands over
	fmt.Println(context.Cause(turn.Context()))
	// Output:
	// behind deploy
	// the gates are closed
}

func ExampleGates_With() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		last := uint64(0)
		for range 2 {
			err := gates.With(ctx, "ledger", func(ctx context.Context, fence uint64) error {
				fmt.Println("a newer token:", fence > last)
				last = fence
				return ctx.Err() // it ends when the turn is lost
			})
			check(err)
		}
	})
	// Output:
	// a newer token: true
	// a newer token: true
}

func ExampleGates_Acquire() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		fmt.Println(turn.Waited() < time.Minute, turn.Until().After(time.Now()))

		hurried, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err = gates.Acquire(hurried, "deploy") // its place is given back
		fmt.Println(errors.Is(err, context.DeadlineExceeded))

		check(turn.Release(ctx))
		fmt.Println(turn.Context().Err())
	})
	// Output:
	// true true
	// true
	// context canceled
}

func ExampleGates_TryAcquire() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		turn, err := gates.TryAcquire(ctx, "deploy")
		check(err)
		_, err = gates.TryAcquire(ctx, "deploy")
		fmt.Println(errors.Is(err, wakebell.ErrGateHeld))
		check(turn.Release(ctx))
	})
	// Output: true
}

func ExampleTurn_Guard() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		stale, err := gates.Acquire(ctx, "ledger")
		check(err)
		check(stale.Release(ctx))

		check(gates.With(ctx, "ledger", func(ctx context.Context, fence uint64) error {
			return gates.Guard(ctx, "ledger", "page 7", fence) // then write page 7
		}))
		err = stale.Guard(ctx, "page 7")
		fmt.Println(errors.Is(err, wakebell.ErrFenceStale))
	})
	// Output: true
}

func ExampleGates_Show() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		check(turn.Guard(ctx, "cluster"))

		var info wakebell.GateInfo
		info, err = gates.Show(ctx, "deploy")
		check(err)
		holder := info.Holder
		fmt.Println(holder.Fence == turn.Fence(), holder.Process != "", info.Waiting)
		fmt.Println(info.Guard["cluster"] == turn.Fence(), info.LastFence == turn.Fence())
		for g, err := range gates.List(ctx) {
			check(err)
			fmt.Println("in use:", g.Name)
		}
	})
	// Output:
	// true true 0
	// true true
	// in use: deploy
}

func ExampleGates_ForceRelease() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		info, err := gates.Show(ctx, "deploy") // after looking at who it is
		check(err)
		fmt.Println(gates.ForceRelease(ctx, "deploy", info.Holder.Fence))
		fmt.Println(errors.Is(turn.Release(ctx), wakebell.ErrTurnLost))
	})
	// Output:
	// true <nil>
	// true
}

func ExampleGates_Repair() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		const seen = 8_000_000_000_000_000 // by a database, before Redis lost its data
		var repaired wakebell.GateRepaired
		repaired, err := gates.Repair(ctx, "ledger", seen)
		check(err)
		fmt.Println(repaired.Before, repaired.After, repaired.Removed)
		turn, err := gates.Acquire(ctx, "ledger")
		check(err)
		fmt.Println(turn.Fence())
	})
	// Output:
	// 0 8000000000000000 0
	// 8000000000000001
}

func ExampleGates_Remove() {
	withGates(wakebell.GatesConfig{}, func(ctx context.Context, gates *wakebell.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		_, err = gates.Remove(ctx, "deploy", false)
		fmt.Println(errors.Is(err, wakebell.ErrGateHeld))
		check(turn.Release(ctx))
		fmt.Println(gates.Remove(ctx, "deploy", false))
		fmt.Println(gates.Remove(ctx, "deploy", false))
	})
	// Output:
	// true
	// true <nil>
	// false <nil>
}

func ExampleGateKeys() {
	keys := wakebell.GateKeys{Stream: "{shop}:tickets"}.WithDefaults()
	fmt.Println(keys.Stream, keys.Group, keys.State)
	keys.State = keys.Stream
	fmt.Println(keys.Validate())
	// Output:
	// {shop}:tickets gates {gates}:state
	// invalid argument: gate keys: Stream and State are both "{shop}:tickets"
}

// customs is an actor that goes through a gate.
type customs struct {
	gates *actor.PID
	done  chan struct{}
}

func (a *customs) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		c.Request(a.gates, &messages.AcquireTurnRequest{Gate: "border"})
	case *messages.Turn: // it is our turn, and is given back if we end
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
	runIn(system, wakebell.Config{Gates: wakebell.GatesConfig{LeaseTTL: time.Minute}}, func(sys *wakebell.System) {
		a := &customs{gates: sys.Gates().PID(), done: make(chan struct{})}
		root := system.Root
		pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
		<-a.done
		check(root.StopFuture(pid).Wait())
	})
	// Output: through border
}
