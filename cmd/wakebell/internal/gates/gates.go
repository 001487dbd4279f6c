// Package gates has the commands for gates.
package gates

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Command returns the command gate.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Hold, inspect and repair gates",
		Long: `A gate is a distributed lock that is granted in FIFO order. Each turn has a
fencing token, which only grows: a resource that rejects older tokens is safe
from a holder that has lost its turn without noticing yet.`,
		Example: `  wakebell gate hold deploy --exec './deploy.sh'
  wakebell gate show deploy
  wakebell gate release deploy --force`,
		RunE: cli.MissingCommand,
	}
	cmd.AddCommand(holdCommand(a), lsCommand(a), showCommand(a), explainCommand(a), releaseCommand(a),
		guardCommand(a), repairCommand(a), rmCommand(a))
	return cmd
}

// listings are the commands that may read from replicas. The others act on what they read.
var listings = map[string]bool{"ls": true, "show": true, "explain": true}

// settings are the flags for gates on Redis.
type settings struct {
	keys     wakebelltype.GateKeys
	lease    time.Duration // 0: the default
	switches opened.GateSwitches
	log      *slog.Logger // nil: nothing is logged
}

func withRedisGates(a *cli.App, s settings, listing bool, fn func(client) error) (err error) {
	conn, err := a.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.Watch(a, 0)
	cfg := conn.Config(s.log)
	if cfg.GateKeys = s.keys; cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if !listing {
		cfg.ReadFrom = nil
	}
	on, err := connection.Switched(conn.Redis, cfg, opened.Switches{Gates: s.switches})
	if err != nil {
		return err
	}
	g, err := gate.New(on, gate.Config{LeaseTTL: s.lease})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return fn(g)
}

// client are the operations on gates, of Redis or of a node.
type client interface {
	gate.Locker
	gate.Operator
}

// withGates runs fn with the gates of the node of --remote or, without it, of
// --redis.
func withGates(ctx context.Context, a *cli.App, cmd *cobra.Command, s settings, fn func(client) error) error {
	if a.RemoteAddress() == "" {
		return withRedisGates(a, s, listings[cmd.Name()], fn)
	}
	if err := cli.RejectNodeFlags(cmd, "keys", "signal-ttl", "elsewhere"); err != nil {
		return err
	}
	a.TurnTTL = s.lease
	return a.WithNode(ctx, func(c *remote.Client) error { return fn(c.Gates()) })
}
