package timers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

type rescheduleFlags struct {
	topic string
	dueFlags
}

func rescheduleCommand(a *cli.App) *cobra.Command {
	f := &rescheduleFlags{}
	cmd := &cobra.Command{
		Use:   "reschedule --topic TOPIC ID (--in DURATION | --at INSTANT)",
		Short: "Change the due time of a timer",
		Long: `Changes the due time of a timer and keeps its body. The next delivery is attempt 1.
If the timer is running, its handler continues but its result is ignored: the
timer is delivered again at the new due time. The outcome is moved or, for a
running timer, superseded. The exit code is 3 if there is no such timer.

With -o json it prints one line with topic, id, due and outcome.`,
		Example: `  wakebell reschedule --topic invoices inv-42 --in 24h
  wakebell reschedule -t invoices inv-42 --at 2031-01-02T15:04:05Z`,
		Args: cobra.ExactArgs(1),
	}
	a.TopicFlag(cmd, &f.topic, "`topic` of the timer")
	f.register(cmd)
	cmd.MarkFlagsOneRequired("in", "at")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		when, err := f.when()
		if err != nil {
			return err
		}
		return a.Ask(ctx, func(c cli.Client) error { return rescheduleTimer(ctx, a, c, f.topic, args[0], when(0)) })
	})
	return cmd
}

func rescheduleTimer(ctx context.Context, a *cli.App, c wakebell.TimerClient, topic, id string, when wakebell.ScheduleOption) error {
	s, err := c.Reschedule(ctx, topic, id, when)
	if err != nil {
		return err
	}
	list := a.NewListing(0, output.Text("ID"), output.Short("DUE"), output.Short("OUTCOME"))
	line := scheduledLine{a.Prefix + topic, id, output.Stamp(s.Due), s.Outcome.String()}
	if err := list.Add(line, line.ID, a.Screen().Time(s.Due), line.Outcome); err != nil {
		return err
	}
	return list.End()
}
