package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

func (a *app) schedulesPauseCommand() *cobra.Command {
	return a.onEach(&cobra.Command{
		Use:   "pause NAME...",
		Short: "Keep recurring schedules from firing",
		Long: `Keeps recurring schedules from firing until resume, on Python beats too. The
first that is absent ends it with exit code 3.`,
		Example: `  wakebell schedules pause nightly`,
	}, func(ctx context.Context, s wakebell.RecurringSchedules, name string) error { return s.Pause(ctx, name) })
}

func (a *app) schedulesResumeCommand() *cobra.Command {
	return a.onEach(&cobra.Command{
		Use:   "resume NAME...",
		Short: "Let paused recurring schedules fire again",
		Long: `Ends a pause: each schedule goes on with its next instant, and what was paused
was not missed. The first that is absent ends it with exit code 3.`,
		Example: `  wakebell schedules resume nightly`,
	}, func(ctx context.Context, s wakebell.RecurringSchedules, name string) error {
		return s.Resume(ctx, name)
	})
}
