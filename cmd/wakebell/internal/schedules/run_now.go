package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/recurring"
)

func runNowCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run-now NAME...",
		Short: "Fire recurring schedules now",
		Long: `Fires recurring schedules now, in addition to their regular runs, also while they
are paused and without a beat. It prints each run as wakebell beat does: name,
due, fired_at and run. It stops at the first absent schedule, with exit code 3.`,
		Example: `  wakebell schedules run-now nightly`,
	}
	celeryFlag(a, cmd)
	cli.JSONFlag(cmd)
	return onEach(a, cmd, func(ctx context.Context, s recurring.Operator, name string) error {
		run, err := s.RunNow(ctx, name)
		if err != nil {
			return err
		}
		return a.PrintJSON(newFireLine(run))
	})
}

// celeryFlag adds --celery to commands that fire schedules.
func celeryFlag(a *cli.App, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.Celery, "celery", false, "send runs of Python schedules as Celery messages, as wakebell beat --celery does")
}
