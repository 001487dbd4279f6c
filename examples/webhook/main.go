// Webhook posts a due timer to an HTTP endpoint, which verifies its signature.
package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/webhook"
)

// Invoice is the body of the timers.
type Invoice struct {
	Number string
	Cents  int
}

// Invoices is the topic. Its handler is elsewhere, and needs no Go.
var Invoices = wakebell.NewTopic[Invoice]("invoices")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	if err := run(ctx, rdb, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb *redis.Client, out *log.Logger) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	secret := webhook.NewSecret() // yours: Config.SecretFile, which is read again when it changes
	url, closeEndpoint, err := endpoint(ctx, secret, out, done)
	if err != nil {
		return err
	}
	defer closeEndpoint()

	loopback, err := webhook.ParseNetworks("loopback") // without it, only public addresses are called
	if err != nil {
		return err
	}
	hook, err := webhook.New(webhook.Config{URL: url, Secrets: []webhook.Secret{secret}, AllowNetworks: loopback})
	if err != nil {
		return err
	}
	defer hook.Close()
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	raw := wakebell.NewTopic[[]byte](Invoices.Name()) // the bodies as they are stored
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(raw, hook.Handle, wakebell.RetryBackoff(100*time.Millisecond, time.Minute))},
	})
	if err != nil {
		return err
	}
	if _, err := Invoices.Schedule(ctx, sys.Client(), Invoice{"42", 1999}, wakebell.In(time.Second), wakebell.ID("inv-42")); err != nil {
		return err
	}
	return sys.Run(ctx) // until ctx ends, then it drains
}

// endpoint serves the other side, which is busy at first and handles the second request.
func endpoint(ctx context.Context, secret webhook.Secret, out *log.Logger, done func()) (url string, end func(), err error) {
	var requests atomic.Int32
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = webhook.Verify(r.Header, body, secret)
		}
		if err != nil {
			http.Error(w, "not verified", http.StatusBadRequest)
			return
		}
		if requests.Add(1) == 1 {
			out.Print("busy")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		out.Printf("%s: %s, attempt %s", r.Header.Get("Wakebell-Id"), body, r.Header.Get("Wakebell-Attempt"))
		time.AfterFunc(100*time.Millisecond, done) // a real node keeps running
	})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}
