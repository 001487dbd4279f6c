// Command demo is "wakebell demo" alone: it compiles in three fifths of the time of the whole
// command line, because it leaves out what serves and reaches nodes over the network.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"github.com/redis/go-redis/v9/logging"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/demo"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
)

func main() {
	logging.Disable() // go-redis returns its errors as well
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func run(ctx context.Context) (err error) {
	server := embedded.Start()
	defer server.Close()
	rdb := server.Client()
	defer func() { err = errors.Join(err, rdb.Close()) }()
	return demo.Run(ctx, demo.Settings{
		Redis: rdb, Embedded: true, Connection: connection.Config{Logger: slog.New(slog.DiscardHandler)},
		Out: os.Stdout, Screen: output.NewScreen(os.Stdout),
	})
}
