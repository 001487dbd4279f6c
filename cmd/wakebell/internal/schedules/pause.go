package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/recurring"
)

func pauseCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME...",
		Short: "Pause recurring schedules",
		Long: `Pauses recurring schedules until resume, also for Python beats. It stops at the
first absent schedule, with exit code 3.

With -o json each is a line with name and change (paused).`,
		Example: `  wakebell schedules pause nightly`,
	}
	a.OutputFlag(cmd)
	return onEach(a, cmd, func(ctx context.Context, s recurring.Operator, name string) error {
		if err := s.Pause(ctx, name); err != nil {
			return err
		}
		return printChanged(a, name, "paused")
	})
}

func resumeCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume NAME...",
		Short: "Resume paused recurring schedules",
		Long: `Resumes paused schedules: each continues with its next instant, and runs skipped
by the pause do not count as missed. It stops at the first absent schedule, with
exit code 3.

With -o json each is a line with name and change (resumed).`,
		Example: `  wakebell schedules resume nightly`,
	}
	a.OutputFlag(cmd)
	zoneFlag(cmd)
	return onEach(a, cmd, func(ctx context.Context, s recurring.Operator, name string) error {
		if err := s.Resume(ctx, name); err != nil {
			return err
		}
		return printChanged(a, name, "resumed")
	})
}
