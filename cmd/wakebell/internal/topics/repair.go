package topics

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func repairCommand(a *cli.App) *cobra.Command {
	var at string
	var o wakebelltype.RepairOptions
	cmd := &cobra.Command{
		Use:   "repair TOPIC",
		Short: "Restore timers after a key of a topic was deleted",
		Long: `Says what can be restored of a topic after a key of it was deleted or evicted, or a
partial restore, and does so with --yes, while nodes and clients use the topic.

Payloads without a timer get their timers back: at the instants that their lease records
or keys have, with their attempts, and others at --at. Timers without a payload are
counted; a node makes each a dead letter with the reason "payload missing" when it is
due, and --drop-missing does so now, unless a handler has it. Lease records and keys of
timers with neither timer nor payload are removed. A dead letter is not touched.

A timer whose remains were being removed is restored, too: it may run a second time.
Without --at such timers and those whose instants were lost are due at once; pause the
topic first to look at them. After an interruption, run the same command again. It needs
Redis, not a node.

With -o json it prints one line: topic, applied, examined, restored, known (of restored,
those whose instants were found), missing (timers without a payload), dropped (of
missing, those that became dead letters) and removed (records and keys).`,
		Example: `  wakebell repair invoices
  wakebell repair invoices --at 2026-12-01T08:00:00Z --drop-missing --yes`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&at, "at", "", "when timers are due whose `instant` was lost, in RFC 3339 (default at once)")
	flags.BoolVar(&o.DropMissing, "drop-missing", false, "make dead letters of timers without a payload")
	flags.BoolVarP(&o.Apply, "yes", "y", false, "restore and remove; without it, only say what that would do")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) (err error) {
		if at != "" {
			if o.At, err = cli.InstantFlag("at", at); err != nil {
				return err
			}
		}
		return a.WithClient(func(c *wakebell.Client) error { return repair(ctx, a, c, args[0], o) })
	})
	return cmd
}

type repairLine struct {
	Topic   string `json:"topic"`
	Applied bool   `json:"applied"`
	wakebelltype.Repaired
}

func repair(ctx context.Context, a *cli.App, c *wakebell.Client, topic string, o wakebelltype.RepairOptions) error {
	stop := a.Elapsed(ctx, "repair")
	done, err := c.Repair(ctx, topic, o)
	stop()
	if err != nil {
		return cli.SoFar(err, done.Restored+done.Dropped, "timers were repaired; run the same command again for the rest")
	}
	if a.WantsJSON() {
		return a.PrintJSON(repairLine{a.Prefix + topic, o.Apply, done})
	}
	verb := "would "
	if o.Apply {
		verb = ""
	}
	err = a.Printf("%srestore %d timers from their payloads, %d of them at known instants\n%sdrop %d of %d timers without a payload\n%sremove %d records and keys of ended timers\n",
		verb, done.Restored, done.Known, verb, done.Dropped, done.Missing, verb, done.Removed)
	if err == nil && !o.Apply && done.Restored+done.Dropped+done.Removed > 0 {
		a.Notef("wakebell: nothing was written; --yes does it\n")
	}
	return err
}
