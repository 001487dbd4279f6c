package topics

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func resumeCommand(a *cli.App) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "resume --topic TOPIC",
		Short: "End a pause of a topic",
		Long: `Ends a pause of a topic on all nodes, and prints its cluster-wide settings, as
pause does. Settings of retune stay.`,
		Example: `  wakebell resume --topic invoices`,
		Args:    cli.NoArgs,
	}
	controls(a, cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebelltype.Control, error) {
		return c.Resume(ctx, topic)
	})
	return cmd
}
