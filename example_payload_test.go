package wakebell_test

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/payload"
)

// Bodies are encrypted in Redis, and plain in the handler. A System decodes with the keys
// that it has, the first of which encrypts.
func ExampleConfig_payloads() {
	today, err := payload.NewKey("2026-11", []byte("32 random bytes, from a keystore"))
	check(err)
	earlier, err := payload.NewKey("2026-05", []byte("the one that was replaced by it."))
	check(err)
	received := make(chan string)
	run(wakebell.Config{
		Payloads: &payload.Chain{Codecs: []payload.Codec{payload.Compress(1 << 10), payload.Encrypt(today, earlier)}},
		Handlers: []wakebell.Handler{wakebell.Handle(Invoices, func(_ context.Context, t wakebell.Timer[Invoice]) error {
			received <- fmt.Sprint(t.Body.Number, " ", payload.Marked(nil, t.Raw), " ", len(t.Raw))
			return nil
		})},
	}, func(sys *wakebell.System) {
		fmt.Println(sys.Client().Payloads().Limit == wakebell.DefaultPayloadLimit)
		bill(sys.Client(), "inv-42")
		fmt.Println(<-received)
	})
	// Output:
	// true
	// 42 false 71
}
