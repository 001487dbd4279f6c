package topics

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

func retuneCommand(a *cli.App) *cobra.Command {
	var topic string
	var clearAll bool
	var set wakebelltype.Settings
	cmd := &cobra.Command{
		Use:   "retune --topic TOPIC (SETTINGS | --clear)",
		Short: "Change settings of a topic on all nodes",
		Long: `Overrides settings of a topic on all nodes, and prints the topic's cluster-wide
settings, as pause does. It replaces all earlier overrides. For settings that are
not given, each node uses its own flags; --clear removes all overrides. A pause
stays.

A change applies to running handlers too: --lease-ttl from the next extension,
--max-lease-age at once, the retry settings when the handler returns. A lower
--max-concurrent ends none.

Without flags it changes nothing and prints the cluster-wide settings.`,
		Example: `  wakebell retune --topic invoices --max-concurrent 2 --max-attempts 50
  wakebell retune -t invoices --clear`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.BoolVar(&clearAll, "clear", false, "remove all overrides")
	for _, name := range cli.TuneFlags(flags, &set) {
		cmd.MarkFlagsMutuallyExclusive("clear", name)
	}
	controls(a, cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebelltype.Control, error) {
		for _, t := range tuning.All {
			switch {
			case !flags.Changed(t.Flag) || t.Get(&set) != 0:
			case t.Off:
				t.Set(&set, -1)
			default:
				return wakebelltype.Control{}, cli.Usagef("--%s: 0, want above 0; omit the flag to use each node's own setting", t.Flag)
			}
		}
		if !clearAll && set == (wakebelltype.Settings{}) {
			return c.Control(ctx, topic)
		}
		return c.Retune(ctx, topic, set)
	})
	return cmd
}
