package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
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

func deadRedriveCommand(a *app) *cobra.Command {
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
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		filter, err := f.choose(args)
		if err != nil {
			return err
		}
		if f.rate < 1 || f.rate > maxRedriveRate {
			return usagef("--rate: %d timers per second, want 1 to %d", f.rate, maxRedriveRate)
		}
		return a.ask(ctx, func(c asked) error { return deadRedrive(ctx, a, c, f, filter) })
	})
	return cmd
}

type redrivenLine struct {
	Topic   string `json:"topic"`
	Entry   string `json:"entry"`
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
}

func deadRedrive(ctx context.Context, a *app, c wakebell.Operator, f *redriveFlags, filter wakebelltype.DeadFilter) error {
	err := a.confirm(f.yes || filter.Entry != "" && !f.overwrite, func() (string, error) {
		n, err := countDead(ctx, c, f.topic, filter)
		question := fmt.Sprintf("Redrive %s dead letters of %s?", n, a.prefix+f.topic)
		if f.overwrite {
			question += " Existing timers with the same ids are replaced."
		}
		return question, err
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var fault error // of printing, which ends the redrive
	done, err := c.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{
		Filter: filter, In: f.in, Overwrite: f.overwrite, Rate: f.rate,
		Each: func(l wakebelltype.RedrivenLetter) {
			if fault == nil {
				fault = printRedriven(a, f.topic, l)
			}
			if fault != nil {
				stop()
			}
		},
	})
	if fault != nil {
		return fault
	}
	if done.SkippedLive > 0 {
		a.notef("wakebell: skipped %d, because timers with their ids exist; --overwrite replaces those\n", done.SkippedLive)
	}
	if err != nil && filter.Entry == "" {
		return soFar(err, done.Redriven+done.Overwritten, "dead letters were redriven; run the same command again for the rest")
	}
	return err
}

// printRedriven prints a dead letter immediately, without aligning columns: at a
// low rate the next one takes a while.
func printRedriven(a *app, topic string, l wakebelltype.RedrivenLetter) error {
	if a.wantsJSON() {
		return a.printJSON(redrivenLine{a.prefix + topic, l.Entry, l.ID, l.Outcome.String()})
	}
	return a.printf("%-15s  %-14s  %s\n", escape(l.Entry), l.Outcome, escape(l.ID))
}
