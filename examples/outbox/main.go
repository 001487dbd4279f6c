// Outbox is an HTTP service for orders. It stores an order in a database, and in the
// same transaction a timer that cancels the order if it is not paid, and a mail. Neither
// exists without the other, even after a crash at any point.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // yours: any driver for PostgreSQL, MySQL or SQLite

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/queue"
)

var (
	// Unpaid is the topic of the timers that cancel orders.
	Unpaid = wakebell.NewTopic[string]("unpaid")
	// Mails is the queue of the mails to send.
	Mails = queue.New[string]("mails")
)

// payWithin is how long an order waits for its payment.
func payWithin() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("PAY_WITHIN")); err == nil {
		return d
	}
	return 30 * time.Minute
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "orders.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	box, err := outbox.New(nil, outbox.SQLite, outbox.Config{})
	if err != nil {
		return err
	}
	if err := box.Migrate(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL)"); err != nil {
		return err
	}

	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	s := &service{db: db, box: box, payWithin: payWithin()}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Unpaid, s.cancelUnpaid),
		wakebell.HandleQueue(Mails, func(_ context.Context, m wakebell.Timer[string]) error {
			fmt.Println("mail:", m.Body)
			return nil
		}),
	}})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	s.relay, err = box.StartRelay(sys, db, outbox.RelayConfig{})
	if err != nil {
		return errors.Join(err, sys.Stop())
	}
	served := serve(ctx, s.routes())
	// The relay stops before the System to which it sends.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(served, s.relay.Stop(within), sys.Stop())
}

// serve answers requests until ctx ends.
func serve(ctx context.Context, routes http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(within)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
