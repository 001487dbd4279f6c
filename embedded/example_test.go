package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/embedded"
)

// What was scheduled is there after a restart.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "invoices")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	with := func(use func(*wakebell.Client) error) error {
		store, err := embedded.Open(dir, embedded.Options{Sync: embedded.SyncAlways, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		rdb := store.Client()
		defer func() { _ = rdb.Close() }()
		conn, err := connection.New(rdb, connection.Config{})
		if err != nil {
			return err
		}
		client, err := wakebell.NewClient(conn)
		if err != nil {
			return err
		}
		return use(client)
	}
	invoices := wakebell.NewTopic[string]("invoices")
	err = with(func(c *wakebell.Client) error {
		_, err := invoices.Schedule(ctx, c, "charge", wakebell.ID("inv-42"), wakebell.In(72*time.Hour))
		return err
	})
	fmt.Println(err)
	err = with(func(c *wakebell.Client) error {
		_, content, err := c.Get(ctx, invoices.Name(), "inv-42")
		fmt.Println(string(content.Body))
		return err
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// charge
	// <nil>
}
