package topics

import (
	"context"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/wakebelltype"
)

func pauseCommand(a *cli.App) *cobra.Command {
	var topic, by, reason, until string
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "pause --topic TOPIC",
		Short: "Pause a topic on all nodes",
		Long: `Pauses a topic on all nodes until resume, for a time (--for) or until an instant
(--until), and prints its cluster-wide settings.
Nodes claim no timers of a paused topic. Running handlers continue, and scheduled
timers wait. Redis stores the pause, with its author and reason.

A topic that is paused already gets the end of this pause, or none. Nodes of
earlier versions do not know the end and wait for another node or for resume.

With -o json it is one line with topic, paused, paused_at, paused_by,
paused_reason, paused_until and settings.`,
		Example: `  wakebell pause --topic invoices --reason 'the bank is down'
  wakebell pause --topic invoices --for 2h`,
		Args: cli.NoArgs,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason to show to operators, a `text` of up to 1,024 bytes")
	cli.DurationVar(cmd.Flags(), &lasts, "for", 0, "end the pause after this `duration` of Redis's clock")
	cmd.Flags().StringVar(&until, "until", "", "end the pause at this `instant` of Redis's clock, in RFC 3339")
	cmd.MarkFlagsMutuallyExclusive("for", "until")
	cmd.Flags().StringVar(&by, "by", "", "`name` of the operator (default user@host)")
	controls(a, cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebelltype.Control, error) {
		if by == "" {
			by = whoami()
		}
		p := wakebelltype.Pause{By: by, Reason: reason, For: lasts}
		if cmd.Flags().Changed("for") && lasts <= 0 {
			return wakebelltype.Control{}, argument.Invalid("for", "%v, want more than 0", lasts)
		}
		if until != "" {
			var err error
			if p.Until, err = cli.InstantFlag("until", until); err != nil {
				return wakebelltype.Control{}, err
			}
		}
		return c.PauseUntil(ctx, topic, p)
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
