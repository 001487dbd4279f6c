// Webservice schedules reminders over HTTP and delivers them, in one process
// that shuts down gracefully on SIGTERM:
//
//	curl -d '{"text":"tea","in":"3s"}' localhost:8080/reminders    201, with its id
//	curl localhost:8080/reminders/ID                               200 or 404
//	curl -X DELETE localhost:8080/reminders/ID                     204 or 404
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
)

// Reminders is the topic. A body is the text to remind of.
var Reminders = wakebell.NewTopic[string]("reminders")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	if err := run(ctx, rdb, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb *redis.Client, out *log.Logger) error {
	remind := func(_ context.Context, t wakebell.Timer[string]) error {
		out.Printf("remember: %s", t.Body)
		return nil
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(Reminders, remind)},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "localhost:8080"))
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: routes(sys.Client()), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	out.Printf("listening on http://%s", listener.Addr())
	select {
	case err := <-failed:
		return errors.Join(err, sys.Stop())
	case <-ctx.Done():
	}

	// Stop the HTTP server first, then wait for running handlers.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = errors.Join(server.Shutdown(grace), sys.Stop())
	out.Print("ended")
	return err
}
