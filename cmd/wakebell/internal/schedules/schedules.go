// Package schedules has the commands for recurring schedules, beat included.
package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote"
)

// Command returns the command schedules.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "Manage recurring schedules",
		Long: `Recurring schedules are stored under the keys of RedBeat and fired by wakebell
beat, or by a program that runs one. The commands also list and change schedules
that Python processes saved.`,
		Example: `  wakebell schedules put nightly --topic reports --cron '30 2 * * *' --tz Europe/Berlin
  wakebell schedules preview nightly -n 5`,
		RunE: cli.MissingCommand,
	}
	cmd.AddCommand(
		putCommand(a), lsCommand(a), showCommand(a), explainCommand(a), rmCommand(a),
		pauseCommand(a), resumeCommand(a), runNowCommand(a), previewCommand(a),
		backfillCommand(a), importCommand(a), exportCommand(a),
	)
	return cmd
}

// onSchedules makes a command run fn with the recurring schedules of Redis or of the
// node of --remote.
func onSchedules(a *cli.App, cmd *cobra.Command, fn func(ctx context.Context, s recurring.Operator, args []string) error) *cobra.Command {
	keyPrefixFlag(a, cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) (err error) {
		if flag := cmd.Flags().Lookup("zone"); flag != nil && flag.Changed {
			if a.Zone, err = zoneNamed(flag.Value.String()); err != nil {
				return err
			}
		}
		if a.RemoteAddress() == "" {
			return a.WithClient(func(c *wakebell.Client) error { return fn(ctx, c.Schedules(), args) })
		}
		if err := cli.RejectNodeFlags(cmd, "key-prefix", "celery", "zone"); err != nil {
			return err
		}
		return a.WithNode(ctx, func(c *remote.Client) error { return fn(ctx, c.Schedules(), args) })
	})
	return cmd
}

// changedLine is the JSON line of a command that changed a schedule.
type changedLine struct {
	Name   string `json:"name"`
	Change string `json:"change"` // paused, resumed, removed or imported
}

// printChanged prints a change with -o json.
func printChanged(a *cli.App, name, change string) error {
	if !a.WantsJSON() {
		return nil
	}
	return a.PrintJSON(changedLine{name, change})
}

// onEach makes a command call do for each named schedule.
func onEach(a *cli.App, cmd *cobra.Command, do func(context.Context, recurring.Operator, string) error) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, names []string) error {
		for _, name := range names {
			if err := do(ctx, s, name); err != nil {
				return err
			}
		}
		return nil
	})
}
