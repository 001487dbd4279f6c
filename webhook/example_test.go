package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/webhook"
)

// A receiver verifies what it gets, and a Webhook posts to it. A node handles a topic with
// wakebell.Handle(topic, hook.Handle).
func Example() {
	secret := webhook.NewSecret() // share secret.Reveal() with the receiver
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || webhook.Verify(r.Header, body, secret) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Printf("%s %s, attempt %s\n", r.Header.Get("Wakebell-Id"), body, r.Header.Get("Wakebell-Attempt"))
	}))
	defer receiver.Close()

	loopback, err := webhook.ParseNetworks("loopback") // for a receiver on this machine
	if err != nil {
		panic(err)
	}
	hook, err := webhook.New(webhook.Config{URL: receiver.URL, Secrets: []webhook.Secret{secret}, AllowNetworks: loopback})
	if err != nil {
		panic(err)
	}
	defer hook.Close()

	invoices := wakebell.NewTopic[[]byte]("invoices")
	due := wakebelltest.Timer(&testing.T{}, invoices, []byte("995 cents"), wakebell.ID("inv-42")) // as a node delivers it
	fmt.Println("error:", hook.Handle(due.Context(), due))
	// Output:
	// inv-42 995 cents, attempt 1
	// error: <nil>
}
