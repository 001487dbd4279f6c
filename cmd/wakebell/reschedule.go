package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

type rescheduleFlags struct {
	topic string
	dueFlags
}

func rescheduleCommand(a *app) *cobra.Command {
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
	a.topicFlag(cmd, &f.topic, "`topic` of the timer")
	f.register(cmd)
	cmd.MarkFlagsOneRequired("in", "at")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		when, err := f.when()
		if err != nil {
			return err
		}
		return a.ask(ctx, func(c asked) error { return rescheduleTimer(ctx, a, c, f.topic, args[0], when(0)) })
	})
	return cmd
}

func rescheduleTimer(ctx context.Context, a *app, c wakebell.TimerClient, topic, id string, when wakebell.ScheduleOption) error {
	s, err := c.Reschedule(ctx, topic, id, when)
	if err != nil {
		return err
	}
	list := a.newListing(0, "ID", "DUE", "OUTCOME")
	line := scheduledLine{a.prefix + topic, id, stamp(s.Due), s.Outcome.String()}
	if err := list.add(line, line.ID, line.Due, line.Outcome); err != nil {
		return err
	}
	return list.end()
}
