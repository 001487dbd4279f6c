package wakebell_test

import (
	"context"
	"errors"
	"log"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/embedded"
)

// connect calls use with a Client of a new Redis.
func connect(use func(context.Context, *wakebell.Client)) {
	server := embedded.Start()
	defer server.Close()
	rdb := server.Client()
	defer func() { check(rdb.Close()) }()
	c, err := wakebell.NewClient(rdb, wakebell.ClientConfig{Logger: quiet})
	check(err)
	use(context.Background(), c)
}

// withDeadLetters calls use after invoices of these numbers were dead-lettered, in
// this order.
func withDeadLetters(use func(context.Context, *wakebell.System), numbers ...string) {
	died := make(chan struct{})
	reject := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		died <- struct{}{}
		return wakebell.Reject(errors.New("no such account"))
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Invoices, reject, wakebell.MaxConcurrent(1)),
	}}, func(sys *wakebell.System) {
		ctx := context.Background()
		for _, number := range numbers {
			bill(sys.Client(), "inv-"+number)
			<-died
		}
		check(sys.Remove(Invoices.Name())) // waits for the settlements
		use(ctx, sys)
	})
}

// bill schedules an invoice of 995 cents, due at once unless opts change that.
func bill(c *wakebell.Client, id string, opts ...wakebell.ScheduleOption) {
	_, err := Invoices.Schedule(context.Background(), c, Invoice{"42", 995}, append(opts, wakebell.ID(id))...)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
