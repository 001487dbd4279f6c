package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/remote"
)

func gateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Hold, inspect and repair gates",
		Long: `A gate is a distributed lock that is granted in FIFO order. Each turn has a
fencing token, which only grows: a resource that rejects older tokens is safe
from a holder that has lost its turn without noticing yet.`,
		Example: `  wakebell gate hold deploy --exec './deploy.sh'
  wakebell gate show deploy
  wakebell gate release deploy --force`,
		RunE: missingCommand,
	}
	cmd.AddCommand(gateHoldCommand(a), gateLsCommand(a), gateShowCommand(a), gateReleaseCommand(a),
		gateGuardCommand(a), gateRepairCommand(a), gateRmCommand(a))
	return cmd
}

func withRedisGates(a *app, cfg gate.Config, fn func(gates) error) (err error) {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	conn.watch(a, 0)
	g, err := gate.New(conn.rdb, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return fn(g)
}

// gates are the operations on gates, of Redis or of a node.
type gates interface {
	gate.Locker
	gate.Operator
}

// withGates runs fn with the gates of the node of --remote or, without it, of
// --redis.
func withGates(ctx context.Context, a *app, cmd *cobra.Command, cfg gate.Config, fn func(gates) error) error {
	if a.remoteAddress() == "" {
		return withRedisGates(a, cfg, fn)
	}
	if err := nodesOwn(cmd, "keys", "signal-ttl", "elsewhere"); err != nil {
		return err
	}
	a.turnTTL = cfg.LeaseTTL
	return a.withNode(ctx, func(c *remote.Client) error { return fn(c.Gates()) })
}
