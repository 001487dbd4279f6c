package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/demo"
)

// demoCommand returns the command demo.
func demoCommand(a *cli.App) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what timers do, in 15 seconds",
		Long: `Schedules six timers, handles them and prints what happens: one fires, one fails
and is retried, one crashes its actor and is redelivered when its lease expires,
one becomes a dead letter, two are cancelled. It ends with a table. The exit code
is 0 if all happened as expected.

It needs no Redis: a server runs inside the process. With --redis (not
WAKEBELL_REDIS) it uses that server, with a topic that it removes afterwards.
Output is coloured on a terminal; NO_COLOR turns colours off.`,
		Example: `  wakebell demo
  wakebell demo --redis redis://127.0.0.1:6379`,
		Args: cli.NoArgs,
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "log the actors' work on stderr")
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) (err error) {
		if a.RedisURL == "" {
			a.RedisURL = cli.EmbeddedRedis
		}
		conn, err := a.Connect()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		log := slog.New(slog.DiscardHandler)
		if verbose {
			log = cli.NewLogger(a.Stderr, "text", "debug")
		}
		return demo.Run(ctx, demo.Settings{Redis: conn.Redis, Embedded: conn.Embedded(), Connection: conn.Config(log), Out: a.Stdout, Screen: a.Screen()})
	})
	return cmd
}
