package topics

import (
	"context"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func pauseCommand(a *cli.App) *cobra.Command {
	var topic, by, reason string
	cmd := &cobra.Command{
		Use:   "pause --topic TOPIC",
		Short: "Pause a topic on all nodes",
		Long: `Pauses a topic on all nodes until resume, and prints its cluster-wide settings.
Nodes claim no timers of a paused topic. Running handlers continue, and scheduled
timers wait. Redis stores the pause, with its author and reason.

With -o json it is one line with topic, paused, paused_at, paused_by,
paused_reason and settings.`,
		Example: `  wakebell pause --topic invoices --reason 'the bank is down'`,
		Args:    cli.NoArgs,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason to show to operators, a `text` of up to 1,024 bytes")
	cmd.Flags().StringVar(&by, "by", "", "`name` of the operator (default user@host)")
	controls(a, cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebelltype.Control, error) {
		if by == "" {
			by = whoami()
		}
		return c.Pause(ctx, topic, by, reason)
	})
	return cmd
}

// whoami returns the user and the host of this process, as far as they are known.
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
