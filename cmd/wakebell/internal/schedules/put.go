package schedules

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/recurring"
)

type putFlags struct {
	topic, json      string
	when             recurring.Rule
	until            string
	misfire, overlap cli.Choice
}

func putCommand(a *cli.App) *cobra.Command {
	f := &putFlags{misfire: cli.OneOf("once", "skip", "all"), overlap: cli.OneOf("allow", "skip", "queue")}
	cmd := &cobra.Command{
		Use:   "put NAME --topic TOPIC (--every D | --cron EXPR | --rrule TEXT)",
		Short: "Store a recurring schedule",
		Long: `Stores a recurring schedule, replacing the one with the same name. With the same
rule it continues where that one was, and stays paused; with another rule it
starts again.

--cron takes 5 fields, or 6 with seconds first. A local time that is skipped for
daylight saving fires at the first instant after the gap; a time that occurs twice
fires once, unless the minute or the hour begins with a star. --rrule takes a rule of RFC 5545, as in
'FREQ=WEEKLY;BYDAY=MO;BYHOUR=9'.

It prints when the schedule runs next; with -o json a line with the fields of
schedules ls.`,
		Example: `  wakebell schedules put tick --topic t --every 30s --json '{"n":1}'
  wakebell schedules put nightly -t reports --cron '30 2 * * 1-5' --tz Europe/Berlin --misfire skip
  wakebell schedules put payday -t pay --rrule 'FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=8;BYMINUTE=0;BYSECOND=0'`,
		Args: cobra.ExactArgs(1),
	}
	a.TopicFlag(cmd, &f.topic, "`topic` of the runs")
	f.register(cmd)
	a.OutputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, args []string) error {
		r, err := f.recurring(args[0], cmd.Flags().Changed("json"))
		if err != nil {
			return err
		}
		if err := s.Put(ctx, r); err != nil {
			return err
		}
		return printStored(ctx, a, s, r.Name)
	})
}

// printStored prints a schedule that was stored. One that has ended already may be gone.
func printStored(ctx context.Context, a *cli.App, s recurring.Operator, name string) error {
	state, err := s.Get(ctx, name)
	switch {
	case err != nil:
		return err
	case a.WantsJSON():
		return a.PrintJSON(newRecurringLine(a.Prefix, state))
	case state.Paused:
		return a.Printf("%s is paused\n", output.Escape(name))
	case state.Next.IsZero():
		return a.Printf("%s has no next run\n", output.Escape(name))
	default:
		return a.Printf("%s runs next at %s\n", output.Escape(name), output.Stamp(state.Next))
	}
}

func (f *putFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.DurationVar(flags, &f.when.Every, "every", 0, "`duration` between two runs")
	flags.BoolVar(&f.when.Relative, "relative", false, "runs fall on whole days (if --every is at least a day), hours or minutes")
	flags.StringVar(&f.when.Cron, "cron", "", "cron `expression`")
	flags.StringVar(&f.when.Zone, "tz", "", "time `zone` of --cron or --rrule, as Europe/Berlin (default UTC)")
	flags.StringVar(&f.when.RRule, "rrule", "", "recurrence `rule` of RFC 5545")
	cli.DurationVar(flags, &f.when.Jitter, "jitter", 0, "delay each run by a random time up to this `duration`")
	flags.StringVar(&f.until, "until", "", "latest `instant` of a run, in RFC 3339")
	flags.Int64Var(&f.when.MaxRuns, "max-runs", 0, "end after this `number` of runs; 0: never")
	flags.Var(&f.misfire, "misfire", "what to do with missed runs")
	flags.Var(&f.overlap, "overlap", "what to do with a run while the timer of the previous one exists")
	flags.StringVar(&f.json, "json", "", "JSON `body` (default none)")
	cli.CompleteChoice(cmd, "misfire", f.misfire)
	cli.CompleteChoice(cmd, "overlap", f.overlap)
	cmd.MarkFlagsMutuallyExclusive("every", "cron", "rrule")
	cmd.MarkFlagsOneRequired("every", "cron", "rrule")
	cmd.MarkFlagsMutuallyExclusive("relative", "cron")
	cmd.MarkFlagsMutuallyExclusive("relative", "rrule")
}

func (f *putFlags) recurring(name string, hasBody bool) (r recurring.Schedule, err error) {
	when := f.when
	if f.until != "" {
		if when.Until, err = cli.InstantFlag("until", f.until); err != nil {
			return r, err
		}
	}
	if f.misfire.String() != "once" {
		when.Misfire = recurring.Misfire(f.misfire.String())
	}
	if f.overlap.String() != "allow" {
		when.Overlap = recurring.Overlap(f.overlap.String())
	}
	if !hasBody {
		return wakebell.NewTopic[[]byte](f.topic).Recurring(name, when, nil), nil
	}
	if err := cli.CheckJSON(f.json); err != nil {
		return r, err
	}
	return wakebell.NewTopic[json.RawMessage](f.topic).Recurring(name, when, json.RawMessage(f.json)), nil
}
