package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleSystem_Health() {
	handle := wakebell.Handle(Invoices, func(context.Context, wakebell.Timer[Invoice]) error { return nil })
	run(wakebell.Config{Handlers: []wakebell.Handler{handle}}, func(sys *wakebell.System) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // without a deadline, Health waits 1 s
		defer cancel()
		h := sys.Health(ctx)
		fmt.Println(h.Live, h.Ready, h.Problems, h.ClockSteps == wakebelltype.ClockSteps{})
		topic := h.Topics[0]
		fmt.Println(topic.Topic, topic.Running, topic.Err)
	})
	// Output:
	// true true [] true
	// invoices 0 <nil>
}

func ExampleSystem_HealthHandler() {
	run(wakebell.Config{}, func(sys *wakebell.System) {
		patient := http.TimeoutHandler(sys.HealthHandler(), 10*time.Second, "") // without a timeout, the handler waits 1 s
		server := httptest.NewServer(patient)
		defer server.Close()
		answer, err := http.Get(server.URL + "/readyz")
		check(err)
		check(answer.Body.Close())
		fmt.Println(answer.Status)
	})
	// Output: 200 OK
}

func ExampleWithReplicas() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := Invoices.Schedule(ctx, c, Invoice{"42", 995}, wakebell.ID("inv-42"),
			wakebell.WithReplicas(1, 100*time.Millisecond))
		var few *wakebelltype.ReplicasError // this Redis has no replicas; the timer is stored
		fmt.Println(errors.As(err, &few) && few.Got < few.Want, wakebell.Retryable(err))
	})
	// Output: true true
}

func ExampleRetryable() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := Invoices.Schedule(ctx, c, Invoice{}, wakebell.ID(""))
		fmt.Println(wakebell.Retryable(err)) // the cause has to be fixed first
	})
	// Output: false
}
