package timers

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func deadRmCommand(a *cli.App) *cobra.Command {
	f := &deadChoice{}
	cmd := &cobra.Command{
		Use:   "rm --topic TOPIC (ENTRY | --reason TEXT | --older-than D | --newer-than D | --all)",
		Short: "Delete dead letters",
		Long: `Deletes dead letters and prints how many. Filters can be combined. The exit code
is 3 if ENTRY is absent. It asks for confirmation on a terminal and requires
--yes elsewhere.

With -o json it prints one line with topic and deleted, a number.`,
		Example: `  wakebell dead rm --topic invoices 1763724000000-0 --yes
  wakebell dead rm -t invoices --older-than 720h`,
		Args: cobra.MaximumNArgs(1),
	}
	f.register(a, cmd)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		filter, err := f.choose(args)
		if err != nil {
			return err
		}
		return a.Ask(ctx, func(c cli.Client) error { return deadRm(ctx, a, c, f, filter) })
	})
	return cmd
}

func deadRm(ctx context.Context, a *cli.App, c wakebell.Operator, f *deadChoice, filter wakebelltype.DeadFilter) error {
	err := a.Confirm(f.yes, func() (string, error) {
		n, err := countDead(ctx, c, f.topic, filter)
		return fmt.Sprintf("Delete %s dead letters of %s?", n, a.Prefix+f.topic), err
	})
	if err != nil {
		return err
	}
	stop := a.Follow(ctx, "delete", func(ctx context.Context) (int64, error) {
		stats, err := c.Stats(ctx, f.topic)
		return stats.Dead, err
	})
	n, err := c.DeleteDead(ctx, f.topic, filter)
	stop()
	if err != nil && n == 0 {
		return err
	}
	if a.WantsJSON() {
		return errors.Join(err, a.PrintJSON(struct {
			Topic   string `json:"topic"`
			Deleted int64  `json:"deleted"`
		}{a.Prefix + f.topic, n}))
	}
	return errors.Join(err, a.Printf("deleted %d\n", n))
}
