package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

func (a *app) schedulesRunNowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run-now NAME...",
		Short: "Fire recurring schedules now",
		Long: `Fires recurring schedules now, beside their instants, whether a beat runs or
not and also while they are paused, and prints each run as wakebell beat does:
name, due, fired_at and run. The first that is absent ends it with exit code 3.`,
		Example: `  wakebell schedules run-now nightly`,
	}
	a.celeryFlag(cmd)
	return a.onEach(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, name string) error {
		run, err := s.RunNow(ctx, name)
		if err != nil {
			return err
		}
		return a.printJSON(newFireLine(run))
	})
}

// celeryFlag is for what fires: runs of Python's schedules are Celery messages.
func (a *app) celeryFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.celery, "celery", false, "as wakebell beat --celery does it")
}
