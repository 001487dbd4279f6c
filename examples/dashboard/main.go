// Dashboard mounts the web dashboard in a server that has pages and a sign-in of its
// own. Open http://localhost:8080/ and sign in as "otto" (operator) or "vera"
// (viewer); the dashboard is at /admin/wakebell/.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/examples/tryout"
)

// Mails is the topic. A body is the address of the recipient.
var Mails = wakebell.NewTopic[string]("mails")

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
	send := func(_ context.Context, t wakebell.Timer[string]) error {
		out.Printf("mail to %s", t.Body)
		return nil
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(Mails, send)},
	})
	if err != nil {
		return err
	}
	client := sys.Client()
	board, err := dashboard.New(nil, dashboard.Operators{
		Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: sys.Gates(),
	}, dashboard.Config{Path: "/admin/wakebell", Writable: true, Authorize: authorize})
	if err != nil {
		return err
	}
	defer board.Close()
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "localhost:8080"))
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: routes(board), ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(board.Close) // ends the streams of browsers
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	out.Printf("listening on http://%s", listener.Addr())
	select {
	case err := <-failed:
		return errors.Join(err, sys.Stop())
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = errors.Join(server.Shutdown(grace), sys.Stop())
	out.Print("ended")
	return err
}

// routes has the pages of your server beside the dashboard.
func routes(board http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/admin/wakebell/", board)
	mux.HandleFunc("POST /login", login)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, `<form method="post" action="/login"><input name="user" placeholder="otto or vera"><button>Sign in</button></form>`)
	})
	return mux
}
