package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

// onEach is a command that does something to each schedule that is named.
func (a *app) onEach(cmd *cobra.Command, do func(context.Context, wakebell.RecurringSchedules, string) error) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, names []string) error {
		for _, name := range names {
			if err := do(ctx, s, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) schedulesRmCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove recurring schedules",
		Long: `Removes recurring schedules; timers that they have fired stay. It asks on a
terminal, and wants --yes elsewhere. The first that is absent ends it with exit
code 3.`,
		Example: `  wakebell schedules rm nightly --yes`,
		Args:    cobra.MinimumNArgs(1),
	}
	yesFlag(cmd, &yes, "do not ask")
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, names []string) error {
		err := a.confirm(yes, func() (string, error) {
			return fmt.Sprintf("Remove %s?", strings.Join(names, ", ")), nil
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := s.Delete(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

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

// backfilledLine is what a backfill did, as it is printed.
type backfilledLine struct {
	Name  string `json:"name"`
	Fired int    `json:"fired"`
}

func (a *app) schedulesBackfillCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "backfill NAME --from INSTANT --to INSTANT",
		Short: "Fire the instants of a range",
		Long: `Fires all instants of a recurring schedule that lie within a range, the end not
included, whether they were fired or not; at most 10,000. Exit code 3 when there
is no such schedule.

With -o json it prints one line with name and fired, a number.`,
		Example: `  wakebell schedules backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&from, "from", "", "first `instant`, in RFC 3339")
	cmd.Flags().StringVar(&to, "to", "", "`instant` before which the range ends")
	_ = cmd.MarkFlagRequired("from") // the flags are there, so this cannot fail
	_ = cmd.MarkFlagRequired("to")
	a.celeryFlag(cmd)
	a.outputFlag(cmd)
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, args []string) error {
		first, err := instantFlag("from", from)
		if err != nil {
			return err
		}
		end, err := instantFlag("to", to)
		if err != nil {
			return err
		}
		n, err := s.Backfill(ctx, args[0], first, end)
		if err != nil {
			return err
		}
		if a.wantsJSON() {
			return a.printJSON(backfilledLine{args[0], n})
		}
		return a.printf("%d\n", n)
	})
}
