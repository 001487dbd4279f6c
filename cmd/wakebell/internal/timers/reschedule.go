package timers

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

type rescheduleFlags struct {
	topic string
	dueFlags
	bulkFlags
}

func rescheduleCommand(a *cli.App) *cobra.Command {
	f := &rescheduleFlags{}
	cmd := &cobra.Command{
		Use:   "reschedule --topic TOPIC (ID | --search TEXT) (--in DURATION | --at INSTANT)",
		Short: "Change the due time of a timer",
		Long: `Changes the due time of a timer and keeps its body. The next delivery is attempt 1.
If the timer is running, its handler continues but its result is ignored: the
timer is delivered again at the new due time. The outcome is moved or, for a
running timer, superseded. The exit code is 3 if there is no such timer.

--search moves all timers that ls --search lists. It asks for confirmation on a
terminal and requires --yes elsewhere. --dry-run lists them, as ls does, and moves
none.

With -o json each is a line with topic, id, due and outcome.`,
		Example: `  wakebell reschedule --topic invoices inv-42 --in 24h
  wakebell reschedule -t invoices inv-42 --at 2031-01-02T15:04:05Z
  wakebell reschedule -t invoices --search inv-2031- --in 1w --dry-run`,
	}
	a.TopicFlag(cmd, &f.topic, "`topic` of the timer")
	f.dueFlags.register(cmd)
	f.bulkFlags.register(cmd, "do not ask for confirmation of --search")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("search") {
			return cli.NoArgs(cmd, args)
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
	cmd.MarkFlagsOneRequired("in", "at")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		when, err := f.when()
		if err != nil {
			return err
		}
		searches, err := f.searches()
		if err != nil {
			return err
		}
		if searches {
			return a.Ask(ctx, func(c cli.Client) error { return rescheduleFound(ctx, a, c, f, when(0)) })
		}
		return a.Ask(ctx, func(c cli.Client) error { return rescheduleTimer(ctx, a, c, f, args[0], when(0)) })
	})
	return cmd
}

// rescheduleFound moves the timers of a search.
func rescheduleFound(ctx context.Context, a *cli.App, c client, f *rescheduleFlags, when wakebell.ScheduleOption) error {
	list := a.NewListing(0, output.Text("ID"), output.Short("DUE"), output.Short("OUTCOME"))
	screen := a.Screen()
	change := func(ctx context.Context, ids []string) (int, error) {
		return each(ids, func(id string) (wakebelltype.Scheduled, error) {
			return c.Reschedule(ctx, f.topic, id, when)
		}, func(id string, s wakebelltype.Scheduled) error {
			line := scheduledLine{a.Prefix + f.topic, id, output.Stamp(s.Due), s.Outcome.String()}
			return list.Add(line, line.ID, screen.Time(s.Due), line.Outcome)
		})
	}
	b := bulk{
		verb: "move", done: "moved", topic: f.topic, operation: wakebelltype.AuditTopicReschedule, detail: ", " + f.due(), change: change,
	}
	err := b.run(ctx, a, c, &f.bulkFlags)
	return errors.Join(err, list.End())
}

func rescheduleTimer(ctx context.Context, a *cli.App, c client, f *rescheduleFlags, id string, when wakebell.ScheduleOption) error {
	s, err := c.Reschedule(ctx, f.topic, id, when)
	if err != nil {
		return err
	}
	record(ctx, a, c, wakebelltype.Change{
		Operation: wakebelltype.AuditTopicReschedule, Name: f.topic, Count: 1, Detail: named([]string{id}) + ", " + f.due(),
	}, nil)
	list := a.NewListing(0, output.Text("ID"), output.Short("DUE"), output.Short("OUTCOME"))
	line := scheduledLine{a.Prefix + f.topic, id, output.Stamp(s.Due), s.Outcome.String()}
	if err := list.Add(line, line.ID, a.Screen().Time(s.Due), line.Outcome); err != nil {
		return err
	}
	return list.End()
}
