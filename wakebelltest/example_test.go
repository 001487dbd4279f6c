package wakebelltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wakebell/wakebell"
)

// t is the *testing.T of the test that runs an example.
var t *testing.T

// TestExamples runs the examples: an Example has no t of its own.
func TestExamples(outer *testing.T) {
	for name, example := range map[string]func(){
		"Run":                    ExampleRun,
		"New":                    ExampleNew,
		"Timer":                  ExampleTimer,
		"LeaseOf":                ExampleLeaseOf,
		"Body":                   ExampleBody,
		"World.Advance":          ExampleWorld_Advance,
		"World.Upcoming":         ExampleWorld_Upcoming,
		"World.Delivered":        ExampleWorld_Delivered,
		"World.RequireDelivered": ExampleWorld_RequireDelivered,
		"World.Dead":             ExampleWorld_Dead,
		"World.Crash":            ExampleWorld_Crash,
		"World.Start":            ExampleWorld_Start,
	} {
		outer.Run(name, func(inner *testing.T) {
			t = inner
			example()
		})
	}
}

type Order struct {
	Number string
	Cents  int
}

var Orders = wakebell.NewTopic[Order]("orders")

// bank is a dependency of the handler under test.
type bank struct {
	open    bool
	charged []string
}

func (b *bank) charge(_ context.Context, t wakebell.Timer[Order]) error {
	switch {
	case t.Body.Cents <= 0:
		return wakebell.Reject(errors.New("nothing to charge"))
	case !b.open:
		return fmt.Errorf("bank is closed: %w", wakebell.RetryIn(8*time.Hour))
	}
	b.charged = append(b.charged, t.Body.Number)
	return nil
}

func (b *bank) config() wakebell.Config {
	return wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Orders, b.charge)}}
}

// placeOrder is code under test: it schedules the charge of an order in three days.
func placeOrder(ctx context.Context, c *wakebell.Client, o Order) error {
	_, err := Orders.Schedule(ctx, c, o, wakebell.ID(o.Number), wakebell.In(72*time.Hour))
	return err
}
