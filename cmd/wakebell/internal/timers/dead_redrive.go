package timers

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

type redriveFlags struct {
	deadChoice
	rate      int
	in        time.Duration
	overwrite bool
}

// maxRedriveRate is the largest Rate of wakebelltype.RedriveOptions.
const maxRedriveRate = 10_000

func deadRedriveCommand(a *cli.App) *cobra.Command {
	f := &redriveFlags{}
	cmd := &cobra.Command{
		Use:   "redrive --topic TOPIC (ENTRY | --reason TEXT | --older-than D | --newer-than D | --all)",
		Short: "Turn dead letters back into timers",
		Long: `Turns dead letters back into timers, the oldest first, and prints the outcome of
each: redriven, overwritten (replaced a timer with the same id), skipped live
(kept: a timer with the same id exists) or skipped broken (kept: cannot be
decoded). The next delivery is attempt 1. Filters can be combined. The exit code
is 3 if ENTRY is absent.

It asks for confirmation on a terminal and requires --yes elsewhere, except for
a single entry without --overwrite. After an interruption, run the same command
again to redrive the rest.

With -o json each is a line with topic, entry, id and outcome.`,
		Example: `  wakebell dead redrive --topic invoices 1763724000000-0
  wakebell dead redrive -t invoices --reason 'card declined' --newer-than 24h --rate 20 --yes`,
		Args: cobra.MaximumNArgs(1),
	}
	f.register(a, cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.rate, "rate", 100, "timers per second, 1 to 10,000")
	inFlag(cmd, &f.in)
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace existing timers with the same ids")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		filter, err := f.choose(args)
		if err != nil {
			return err
		}
		if f.rate < 1 || f.rate > maxRedriveRate {
			return cli.Usagef("--rate: %d timers per second, want 1 to %d", f.rate, maxRedriveRate)
		}
		return a.Ask(ctx, func(c cli.Client) error { return deadRedrive(ctx, a, c, f, filter) })
	})
	return cmd
}

type redrivenLine struct {
	Topic   string `json:"topic"`
	Entry   string `json:"entry"`
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
}

func deadRedrive(ctx context.Context, a *cli.App, c wakebell.Operator, f *redriveFlags, filter wakebelltype.DeadFilter) error {
	err := a.Confirm(f.yes || filter.Entry != "" && !f.overwrite, func() (string, error) {
		n, err := countDead(ctx, c, f.topic, filter)
		question := fmt.Sprintf("Redrive %s dead letters of %s?", n, a.Prefix+f.topic)
		if f.overwrite {
			question += " Existing timers with the same ids are replaced."
		}
		return question, err
	})
	if err != nil {
		return err
	}
	progress := a.Progress("redrive", deadTotal(ctx, c, f.topic, filter))
	began := time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var fault error // of printing, which ends the redrive
	done, err := c.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{
		Filter: filter, In: f.in, Overwrite: f.overwrite, Rate: f.rate,
		Each: func(l wakebelltype.RedrivenLetter) {
			if fault == nil {
				fault = printRedriven(a, f.topic, l)
			}
			progress.Add(1)
			if fault != nil {
				stop()
			}
		},
	})
	if fault != nil {
		return fault
	}
	if err == nil && filter.Entry == "" {
		a.Summaryf("redriven %d, overwritten %d, skipped %d, in %v",
			done.Redriven, done.Overwritten, done.SkippedLive+done.SkippedBroken, output.Took(began))
	}
	if done.SkippedLive > 0 {
		a.Notef("wakebell: skipped %d, because timers with their ids exist; --overwrite replaces those\n", done.SkippedLive)
	}
	if err != nil && filter.Entry == "" {
		return cli.SoFar(err, done.Redriven+done.Overwritten, "dead letters were redriven; run the same command again for the rest")
	}
	return err
}

// printRedriven prints a dead letter immediately, without aligning columns: at a
// low rate the next one takes a while.
func printRedriven(a *cli.App, topic string, l wakebelltype.RedrivenLetter) error {
	if a.WantsJSON() {
		return a.PrintJSON(redrivenLine{a.Prefix + topic, l.Entry, l.ID, l.Outcome.String()})
	}
	line := fmt.Sprintf("%-15s  %-14s  %s", output.Escape(l.Entry), l.Outcome, output.Escape(l.ID))
	return a.Printf("%s\n", a.Screen().Cut(line))
}
