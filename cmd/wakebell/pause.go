package main

import (
	"context"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) pauseCommand() *cobra.Command {
	var topic, by, reason string
	cmd := &cobra.Command{
		Use:   "pause --topic TOPIC",
		Short: "Have all nodes take no timers of a topic",
		Long: `Orders all nodes to take no timers of a topic until resume, and prints what is
ordered of it then. What runs goes on, and what is scheduled waits. The order
is kept in Redis, with who gave it and why.

With -o json it is one line with topic, paused, paused_at, paused_by,
paused_reason and settings.`,
		Example: `  wakebell pause --topic invoices --reason 'the bank is down'`,
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks; a `text` of up to 1,024 bytes")
	cmd.Flags().StringVar(&by, "by", "", "`who` pauses (default this user at this host)")
	a.orders(cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebell.Control, error) {
		if by == "" {
			by = whoami()
		}
		return c.Pause(ctx, topic, by, reason)
	})
	return cmd
}

// whoami names who runs the program, as far as it can be told.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
