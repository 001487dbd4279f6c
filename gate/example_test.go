package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/wakebelltype"
)

// withGates runs fn with Gates, and closes them.
func withGates(cfg gate.Config, fn func(ctx context.Context, gates *gate.Gates)) {
	server := embedded.Start() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{})
	check(err)
	gates, err := gate.New(conn, cfg)
	check(err)
	defer func() { check(gates.Close()) }()
	fn(context.Background(), gates)
}

func ExampleNew() {
	server := embedded.Start() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{})
	check(err)
	gates, err := gate.New(conn, gate.Config{LeaseTTL: 5 * time.Second})
	check(err)
	turn, err := gates.Acquire(context.Background(), "deploy")
	check(err)
	fmt.Println("behind", turn.Gate())
	fmt.Println("actor:", gates.PID().GetId()) // for actors of the same ActorSystem; see System.Gates
	check(gates.Close())                       // the next waiter gets the turn
	fmt.Println(context.Cause(turn.Context()))
	// Output:
	// behind deploy
	// actor: gates
	// the gates are closed
}

func ExampleGates_With() {
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		last := uint64(0)
		for range 2 {
			err := gates.With(ctx, "accounts", func(ctx context.Context, fence uint64) error {
				fmt.Println("a newer token:", fence > last)
				last = fence
				return ctx.Err() // the turn was lost
			})
			check(err)
		}
	})
	// Output:
	// a newer token: true
	// a newer token: true
}

func ExampleGates_Acquire() {
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		fmt.Println(turn.Waited() < time.Minute, turn.Until().After(time.Now()))

		hurried, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err = gates.Acquire(hurried, "deploy") // its ticket is removed
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
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		turn, err := gates.TryAcquire(ctx, "deploy")
		check(err)
		_, err = gates.TryAcquire(ctx, "deploy")
		fmt.Println(errors.Is(err, gate.ErrHeld))
		check(turn.Release(ctx))
	})
	// Output: true
}

func ExampleTurn_Guard() {
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		stale, err := gates.Acquire(ctx, "accounts")
		check(err)
		check(stale.Release(ctx))

		check(gates.With(ctx, "accounts", func(ctx context.Context, fence uint64) error {
			return gates.Guard(ctx, "accounts", "page 7", fence) // then write page 7
		}))
		err = stale.Guard(ctx, "page 7")
		fmt.Println(errors.Is(err, gate.ErrFenceStale))
	})
	// Output: true
}

func ExampleGates_Show() {
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		check(turn.Guard(ctx, "cluster"))

		var info wakebelltype.GateInfo
		info, err = gates.Show(ctx, "deploy")
		check(err)
		holder := info.Holder
		fmt.Println(holder.Fence == turn.Fence(), holder.Process != "", info.Waiting)
		fmt.Println(info.Guard["cluster"] == turn.Fence(), info.LastFence == turn.Fence())
		for g, err := range gates.List(ctx, wakebelltype.Page{}) {
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
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		info, err := gates.Show(ctx, "deploy") // after a check of the holder
		check(err)
		fmt.Println(gates.ForceRelease(ctx, "deploy", info.Holder.Fence))
		fmt.Println(errors.Is(turn.Release(ctx), gate.ErrTurnLost))
	})
	// Output:
	// true <nil>
	// true
}

func ExampleGates_Repair() {
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		const seen = 8_000_000_000_000_000 // by a database, before Redis lost its data
		var repaired wakebelltype.GateRepaired
		repaired, err := gates.Repair(ctx, "accounts", seen)
		check(err)
		fmt.Println(repaired.Before, repaired.After, repaired.Removed)
		turn, err := gates.Acquire(ctx, "accounts")
		check(err)
		fmt.Println(turn.Fence())
	})
	// Output:
	// 0 8000000000000000 0
	// 8000000000000001
}

func ExampleGates_Remove() {
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		_, err = gates.Remove(ctx, "deploy", false)
		fmt.Println(errors.Is(err, gate.ErrHeld))
		check(turn.Release(ctx))
		fmt.Println(gates.Remove(ctx, "deploy", false))
		fmt.Println(gates.Remove(ctx, "deploy", false))
	})
	// Output:
	// true
	// true <nil>
	// false <nil>
}

func ExampleKeys() {
	keys := wakebelltype.GateKeys{Stream: "{shop}:tickets", State: "{shop}:tickets"}
	_, err := connection.New(redis.NewClient(&redis.Options{}), connection.Config{GateKeys: keys})
	fmt.Println(err)
	// Output:
	// invalid argument: gate keys: Stream and State are both "{shop}:tickets"
}

func ExampleLocker() {
	// The interface accepts Gates of this process and those of a Client of package
	// remote.
	deploy := func(ctx context.Context, gates gate.Locker) error {
		turn, err := gates.Acquire(ctx, "deploy")
		if err != nil {
			return err
		}
		return turn.Do(ctx, func(ctx context.Context, _ uint64) error {
			fmt.Println("alone")
			return ctx.Err()
		})
	}
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		check(deploy(ctx, gates))
	})
	// Output: alone
}

func ExampleOperator() {
	// The interface accepts Gates of this process and those of a Client of package
	// remote.
	evict := func(ctx context.Context, of gate.Operator, gate string) (bool, error) {
		info, err := of.Show(ctx, gate)
		if err != nil || info.Holder.Fence == 0 {
			return false, err
		}
		return of.ForceRelease(ctx, gate, info.Holder.Fence)
	}
	withGates(gate.Config{}, func(ctx context.Context, gates *gate.Gates) {
		turn, err := gates.Acquire(ctx, "deploy")
		check(err)
		fmt.Println(evict(ctx, gates, "deploy"))
		fmt.Println(errors.Is(turn.Release(ctx), gate.ErrTurnLost))
	})
	// Output:
	// true <nil>
	// true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
